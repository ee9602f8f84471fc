// How global memory serves one warp instruction (a request): in sectors of 32 bytes.
#pragma once

#include "banks.hpp"

constexpr unsigned sector_bytes = 32;

struct SectorUse {
  unsigned sectors = 0;
  unsigned wanted_bytes = 0;  // each byte once, however many lanes ask for it
};

// A set of up to two keys a lane, emptied in no time.
class KeySet {
 public:
  void clear() { ++now_; }
  bool insert(uintptr_t key) {
    unsigned slot = static_cast<unsigned>((key * 0x9E3779B97F4A7C15u) >> 57);
    for (; stamps_[slot] == now_; slot = (slot + 1) % slots)
      if (keys_[slot] == key) return false;
    stamps_[slot] = now_;
    keys_[slot] = key;
    return true;
  }

 private:
  static constexpr unsigned slots = 128;
  uintptr_t keys_[slots];
  uint64_t stamps_[slots] = {};
  uint64_t now_ = 1;
};

// Lanes in ascending order, as they mostly are: what is new differs from the last.
inline bool ascending_use(const WarpAddresses& warp, unsigned bytes, SectorUse& use) {
  uintptr_t before = 0, last_sector = UINTPTR_MAX;
  for (int lane = 0; lane < warp_lanes; ++lane) {
    if (!warp.has(lane)) continue;
    uintptr_t address = warp.address[lane];
    if (use.wanted_bytes != 0 && address <= before) {
      if (address == before) continue;
      return false;
    }
    uintptr_t first = address / sector_bytes, last = (address + bytes - 1) / sector_bytes;
    use.sectors += static_cast<unsigned>(last - first) + (first != last_sector);
    use.wanted_bytes += bytes;
    before = address;
    last_sector = last;
  }
  return true;
}

inline SectorUse sector_use(const WarpAddresses& warp, unsigned bytes) {
  SectorUse ascending;
  if (ascending_use(warp, bytes, ascending)) return ascending;
  static thread_local KeySet sectors, addresses;
  sectors.clear();
  addresses.clear();
  SectorUse use;
  for (int lane = 0; lane < warp_lanes; ++lane) {
    if (!warp.has(lane)) continue;
    uintptr_t first = warp.address[lane] / sector_bytes, last = (warp.address[lane] + bytes - 1) / sector_bytes;
    for (uintptr_t sector = first; sector <= last; ++sector) use.sectors += sectors.insert(sector);
    if (addresses.insert(warp.address[lane])) use.wanted_bytes += bytes;
  }
  return use;
}
