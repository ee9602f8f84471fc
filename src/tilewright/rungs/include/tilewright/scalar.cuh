// Scalar traits: what a kernel's element is in memory and in the accumulator, and its arithmetic.
// A kernel names only `Scalar`, so another type (or an exact field) is a new struct here, not a new kernel.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

struct F32 {
  using storage = float;
  using accumulate = float;

  static __device__ __forceinline__ accumulate zero() { return 0.0f; }
  static __device__ __forceinline__ storage storage_zero() { return 0.0f; }
  static __device__ __forceinline__ accumulate load(const storage* p) { return *p; }
  static __device__ __forceinline__ accumulate widen(storage x) { return x; }
  static __device__ __forceinline__ storage round(accumulate x) { return x; }

  // Each result is rounded once: contraction never decides bits, so GPU and host agree.
  static __device__ __forceinline__ accumulate fma(accumulate a, accumulate b, accumulate c) {
    return __fmaf_rn(a, b, c);
  }
  static __device__ __forceinline__ accumulate mul(accumulate a, accumulate b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ accumulate add(accumulate a, accumulate b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ accumulate relu(accumulate x) { return x < 0.0f ? 0.0f : x; }  // keeps NaN
};

}  // namespace tilewright
