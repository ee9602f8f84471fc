// Registers moved between warpgroups: a CTA starts with the same count for each thread, those that copy give some back
// and those that multiply take them. All warps of a warpgroup call it together; `count` is a multiple of 8 from 24 to
// 256. Works only where the kernel's launch bounds fix what it starts with. Two bodies, CUDA and emulator. sm_90a.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

template <int count>
__forceinline__ void release_registers(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_set_registers(count, 0, file, line);
}

template <int count>
__forceinline__ void acquire_registers(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_set_registers(count, 1, file, line);
}

#elif __CUDA_ARCH__ >= 900

// Down to `count` a thread.
template <int count>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(count));
}

// Up to `count` a thread, once others have released as many.
template <int count>
__device__ __forceinline__ void acquire_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(count));
}

#endif

}  // namespace tilewright
