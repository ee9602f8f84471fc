// A kernel that begins while the kernel before it on the stream ends: programmatic dependent launch. Its CTAs set up
// what needs no global memory, wait, and only then read and write. Such a build has DEPENDENT = 1, and its launch says
// so; with 0 both functions are empty. Each has two bodies, CUDA and emulator, where kernels run one after the other.
// sm_90 and later.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

__forceinline__ void wait_for_previous_kernel() {}
__forceinline__ void let_next_kernel_start() {}

#else

#if __CUDA_ARCH__ < 900
static_assert(DEPENDENT == 0, "no kernel can begin before the one before it has ended on this architecture");
#endif

// Returns when the kernels before this one have ended and all that they wrote is seen. Every thread calls it before its
// first access to global memory, copies by TMA and flags in the workspace among them, and no CTA exits without it: so
// the end of this kernel is the end of all before it too.
__device__ __forceinline__ void wait_for_previous_kernel() {
  if constexpr (DEPENDENT != 0) asm volatile("griddepcontrol.wait;" : : : "memory");
}

// This CTA leaves room soon. Once all of them have said so or exited, CTAs of the next kernel may start, and wait. It
// promises nothing of the results, which may still be on their way.
__device__ __forceinline__ void let_next_kernel_start() {
  if constexpr (DEPENDENT != 0) asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

#endif

}  // namespace tilewright
