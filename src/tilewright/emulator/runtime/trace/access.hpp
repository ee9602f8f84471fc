// One access to shared or global memory, as the instrumented kernel makes it or the runner in its name.
// Owns the words for it; what follows from accesses is counter.hpp's and checker.hpp's.
#pragma once

#include <stdint.h>

enum class Space : uint8_t { shared_static, shared_dynamic, global };

// The two halves of an asynchronous copy are accesses of their own: it loads global and stores shared memory. So are
// those of a TMA load (it loads global, fills shared memory, and counts its bytes in an mbarrier) and of a TMA store
// (it reads shared and stores global memory). A matrix load or store is what ldmatrix or stmatrix moves for the lane
// that points there. The last six are the asynchronous proxy's.
enum class Kind : uint8_t {
  load,
  store,
  copy_load,
  copy_store,
  atomic_load,
  atomic,
  matrix_load,
  matrix_store,
  mbarrier_init,
  mbarrier_use,
  tma_load,
  tma_fill,
  tma_count,
  tma_read,
  tma_store,
  wgmma_read,
};

inline bool by_copy(Kind kind) { return kind == Kind::copy_load || kind == Kind::copy_store; }
inline bool by_async_proxy(Kind kind) { return kind >= Kind::tma_load; }
inline bool is_atomic(Kind kind) { return kind == Kind::atomic_load || kind == Kind::atomic; }
inline bool writes(Kind kind) {
  return kind == Kind::store || kind == Kind::copy_store || kind == Kind::atomic || kind == Kind::matrix_store ||
         kind == Kind::mbarrier_init || kind == Kind::tma_fill || kind == Kind::tma_store;
}

struct Access {
  uintptr_t address;
  uint32_t site;  // the instruction's offset in the kernel's shared object
  uint16_t bytes;
  Kind kind;
  Space space;

  Access(uintptr_t address, uint32_t site, unsigned bytes, Kind kind, Space space)
      : address(address), site(site), bytes(static_cast<uint16_t>(bytes)), kind(kind), space(space) {}

  // Orders what one instruction does: a copy's store comes after its load.
  uint64_t step() const { return uint64_t{site} << 1 | (kind == Kind::copy_store); }
};
