// How shared memory serves one warp instruction: 32 banks of four bytes, one word of each bank a wavefront.
// Owns the rule, which is what Nsight Compute counts on an H200 for each of some 300 access patterns.
#pragma once

#include <stdint.h>

constexpr int warp_lanes = 32;
constexpr unsigned bank_count = 32, bank_bytes = 4;

// One warp instruction: `address[lane]` counts where bit `lane` of `active` is set.
struct WarpAddresses {
  uintptr_t address[warp_lanes];
  uint32_t active = 0;

  bool has(int lane) const { return active >> lane & 1; }
};

struct BankUse {
  int wavefronts = 0;
  int phases = 0;  // the wavefronts it would take without conflicts
  int ways = 0;    // the most words that one bank has to deliver in one phase
  uint32_t banks = 0;
};

// The words that the banks deliver in one phase. Accesses of 8 or 16 aligned bytes take two or four banks together,
// so `unit` bytes of banks count as one group.
class PhaseWords {
 public:
  explicit PhaseWords(unsigned unit) : groups_(bank_count * bank_bytes / unit) {}

  void add(uint32_t word) {
    unsigned group = word % groups_;
    int count = counts_[group];
    for (int i = 0; i < count; ++i)
      if (words_[group][i] == word) return;
    words_[group][count] = word;
    counts_[group] = static_cast<uint8_t>(count + 1);
    if (count == ways_) ways_ = count + 1;
  }
  int ways() const { return ways_; }

 private:
  unsigned groups_;
  uint8_t counts_[bank_count] = {};
  int ways_ = 0;
  uint32_t words_[bank_count][warp_lanes];
};

// Whether every lane of the warp shares its address with its neighbour i^1, or every lane with i^2; an idle neighbour
// counts as sharing.
inline bool lanes_pair(const WarpAddresses& warp) {
  for (int distance : {1, 2}) {
    bool all = true;
    for (int lane = 0; all && lane < warp_lanes; ++lane)
      all = !warp.has(lane) || !warp.has(lane ^ distance) || warp.address[lane] == warp.address[lane ^ distance];
    if (all) return true;
  }
  return false;
}

inline bool aligned(const WarpAddresses& warp, unsigned bytes) {
  uintptr_t bits = 0;
  for (int lane = 0; lane < warp_lanes; ++lane) bits |= warp.has(lane) ? warp.address[lane] : 0;
  return (bits & (bytes - 1)) == 0;
}

inline void serve_phase(const WarpAddresses& warp, unsigned bytes, int first_lane, int lanes, BankUse& use) {
  unsigned unit = bytes > bank_bytes && aligned(warp, bytes) ? bytes : bank_bytes;
  unsigned groups = bank_count * bank_bytes / unit, together = unit / bank_bytes;
  auto each_word = [&](auto visit) {
    for (int lane = first_lane; lane < first_lane + lanes; ++lane)
      for (unsigned at = 0; warp.has(lane) && at < bytes; at += unit)
        visit(static_cast<uint32_t>(warp.address[lane] + at) / unit);
  };
  uint32_t lowest = UINT32_MAX, highest = 0, banks = 0;
  each_word([&](uint32_t word) {
    lowest = word < lowest ? word : lowest;
    highest = word > highest ? word : highest;
    banks |= ((1u << together) - 1) << word % groups * together;
  });
  if (banks == 0) return;
  int ways = 1;
  if (highest - lowest >= groups) {  // nearer words lie in banks of their own
    PhaseWords words(unit);
    each_word([&](uint32_t word) { words.add(word); });
    ways = words.ways();
  }
  use.wavefronts += ways;
  use.phases += 1;
  use.banks |= banks;
  if (ways > use.ways) use.ways = ways;
}

// `bytes` is the width of each lane's access: up to 4 all lanes are one phase, 8 bytes take two of sixteen lanes, 16
// bytes four of eight. A plain load whose lanes pair takes half as many; stores and ldmatrix never do.
inline BankUse bank_use(const WarpAddresses& warp, unsigned bytes, bool is_plain_load) {
  BankUse use;
  int lanes = warp_lanes;
  if (bytes > bank_bytes) {
    lanes = warp_lanes * static_cast<int>(bank_bytes) / static_cast<int>(bytes);
    if (is_plain_load && lanes_pair(warp)) lanes *= 2;
  }
  for (int first = 0; first < warp_lanes; first += lanes) serve_phase(warp, bytes, first, lanes, use);
  return use;
}
