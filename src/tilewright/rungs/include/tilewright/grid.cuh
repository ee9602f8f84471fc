// CTAs that wait for each other, through flags and sums in global memory. Each function has two bodies, CUDA and
// emulator. Waiting is wait_until and never a loop of one's own: the emulator runs other CTAs in it. A CTA may wait
// only for one that is sure to run: started before it, or resident beside it.
//
// One thread publishes for its CTA: __syncthreads, then it stores or adds. One thread waits for its CTA: then
// __syncthreads. What was written before the one is then seen after the other.
#pragma once

#include "tilewright/platform.cuh"

#if TILEWRIGHT_EMULATED
// Tells the runner to give CTAs turns.
extern "C" __attribute__((visibility("default"))) const bool tilewright_waits_across_ctas = true;
#endif

namespace tilewright {

#if TILEWRIGHT_EMULATED

inline unsigned load_acquire(const unsigned* flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }

inline void store_release(unsigned* flag, unsigned value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
  tilewright_published();
}

inline unsigned atomic_add(unsigned* sum, unsigned value) {
  unsigned before = __atomic_fetch_add(sum, value, __ATOMIC_ACQ_REL);
  tilewright_published();
  return before;
}

// As the hardware's sums in global memory do, whatever the compiler's flags.
inline float flush_subnormal(float x) {
  constexpr float smallest_normal = 0x1p-126f;
  return fabsf(x) < smallest_normal ? __builtin_copysignf(0.0f, x) : x;
}

inline void atomic_add(float* sum, float value) {
  float before, after;
  __atomic_load(sum, &before, __ATOMIC_RELAXED);
  do {
    after = flush_subnormal(flush_subnormal(before) + flush_subnormal(value));
  } while (!__atomic_compare_exchange(sum, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  tilewright_published();
}

inline void wait_until(const unsigned* flag, unsigned value, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  tilewright_wait_until(flag, value, file, line);
}

#else

// What the storing thread saw before its store_release or atomic_add is seen after it.
__device__ __forceinline__ unsigned load_acquire(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(__cvta_generic_to_global(flag)) : "memory");
  return value;
}

__device__ __forceinline__ void store_release(unsigned* flag, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" : : "l"(__cvta_generic_to_global(flag)), "r"(value) : "memory");
}

// Returns the sum before. Releases and acquires.
__device__ __forceinline__ unsigned atomic_add(unsigned* sum, unsigned value) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(__cvta_generic_to_global(sum)), "r"(value)
               : "memory");
  return before;
}

// Orders nothing and takes subnormals as zero. Sums in whatever order CTAs come, so bits may differ from launch to
// launch.
__device__ __forceinline__ void atomic_add(float* sum, float value) {
  asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;"
               :
               : "l"(__cvta_generic_to_global(sum)), "f"(value)
               : "memory");
}

// Returns when the flag holds the value, and acquires. A flag that may pass the value by must not be waited for.
__device__ __forceinline__ void wait_until(const unsigned* flag, unsigned value) {
  while (load_acquire(flag) != value) {
  }
}

#endif

}  // namespace tilewright
