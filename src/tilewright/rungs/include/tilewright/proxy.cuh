// Between the two ways to shared memory: a thread's own loads and stores (the generic proxy), and those that TMA and
// wgmma make for it (the asynchronous proxy). What threads have stored is seen by the asynchronous proxy only behind
// one of these fences, which stands between the stores and the barrier that hands them on. The other way needs none: a
// wait for TMA or wgmma is a fence itself. Each function has two bodies, CUDA and emulator.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

__forceinline__ void fence_proxy_async() { tilewright_proxy_fence(); }
__forceinline__ void fence_mbarrier_init() { tilewright_proxy_fence(); }

#elif __CUDA_ARCH__ >= 900

// What happened before is seen by the asynchronous accesses that happen after.
__device__ __forceinline__ void fence_proxy_async() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// The mbarriers that this thread has initialised are seen by TMA, which counts bytes in them.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

#endif

}  // namespace tilewright
