// A warp's lanes together. CUDA's own functions serve both machines: __syncwarp, __shfl_sync, __shfl_up_sync,
// __shfl_down_sync, __shfl_xor_sync, __all_sync, __any_sync, __ballot_sync, __match_any_sync and __match_all_sync are
// the compiler's on CUDA and the emulator's on the host. Here stands what has no function of CUDA's.
//
// Every lane that the mask names and that has not ended must come, at the same line with the same mask.
#pragma once

#include "tilewright/platform.cuh"

#if TILEWRIGHT_EMULATED
#include "warp_functions.hpp"
#endif

namespace tilewright {

constexpr unsigned FULL_WARP = 0xFFFFFFFF;

// True in one lane of the mask, the same one for the same mask. Every lane of the mask must come.
#if TILEWRIGHT_EMULATED

inline bool elect_one(unsigned mask = FULL_WARP, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  auto vote = emulator::vote(mask, true, "elect_one", file, line);
  return __builtin_ctz(vote.lanes_there) == emulator::lane_index();
}

#else

__device__ __forceinline__ bool elect_one(unsigned mask = FULL_WARP) {
#if __CUDA_ARCH__ >= 900
  unsigned elected;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "elect.sync _|p, %1;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected)
      : "r"(mask)
      : "memory");
  return elected != 0;
#else
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  __syncwarp(mask);
  return lane == static_cast<unsigned>(__ffs(static_cast<int>(mask)) - 1);
#endif
}

#endif

}  // namespace tilewright
