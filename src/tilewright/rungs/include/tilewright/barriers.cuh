// Barriers of some of a CTA's warps, by number: 1 to 15, as barrier 0 is __syncthreads. Each function has two bodies,
// CUDA and emulator. `threads` counts all that arrive, waiting or not, in whole warps; every thread of a warp must
// come. What a thread wrote before it arrives is seen by those that have waited.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

// Arrives and waits until `threads` threads have arrived.
inline void barrier_sync(int id, int threads, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_barrier(id, threads, 1, file, line);
}

// Arrives and goes on.
inline void barrier_arrive(int id, int threads, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_barrier(id, threads, 0, file, line);
}

#else

__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__device__ __forceinline__ void barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

#endif

}  // namespace tilewright
