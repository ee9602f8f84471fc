// Scalar traits: what a kernel's element is in memory and in the accumulator, and its arithmetic.
// A kernel names only `Scalar`, its operands' element, and `Output`, that of C and D. Another type (or an exact field)
// is a new struct here, not a new kernel.
#pragma once

#include "tilewright/platform.cuh"
#if TILEWRIGHT_EMULATED
#include "half.hpp"
#endif

namespace tilewright {

struct Float32Arithmetic {
  using accumulate = float;

  static __device__ __forceinline__ accumulate zero() { return 0.0f; }

  // Each result is rounded once: contraction never decides bits, so GPU and host agree.
  static __device__ __forceinline__ accumulate fma(accumulate a, accumulate b, accumulate c) {
    return __fmaf_rn(a, b, c);
  }
  static __device__ __forceinline__ accumulate mul(accumulate a, accumulate b) { return __fmul_rn(a, b); }
  static __device__ __forceinline__ accumulate add(accumulate a, accumulate b) { return __fadd_rn(a, b); }
  static __device__ __forceinline__ accumulate relu(accumulate x) { return x < 0.0f ? 0.0f : x; }  // keeps NaN

  // x / (1 + exp(-y)). Of all this, exp alone differs between machines, by an ulp or two.
  static __device__ __forceinline__ accumulate gated(accumulate x, accumulate y) {
    return __fdiv_rn(x, add(1.0f, expf(-y)));
  }
  static __device__ __forceinline__ accumulate silu(accumulate x) { return gated(x, x); }
  // By tanh, as cuBLASLt: (1 + tanh(z)) / 2 is 1 / (1 + exp(-2z)), and 2z = x (2 sqrt(2/pi)) (1 + 0.044715 x^2).
  static __device__ __forceinline__ accumulate gelu(accumulate x) {
    return gated(x, mul(x, fma(mul(x, x), 0.0713548162726f, 1.59576912161f)));
  }
};

struct F32 : Float32Arithmetic {
  using storage = float;

  static __device__ __forceinline__ storage storage_zero() { return 0.0f; }
  static __device__ __forceinline__ accumulate load(const storage* p) { return *p; }
  static __device__ __forceinline__ accumulate widen(storage x) { return x; }
  static __device__ __forceinline__ storage round(accumulate x) { return x; }
};

// Elements that lie in memory as float32; tensor cores alone multiply them, and take no more of one than its sign, its
// exponent and the ten upper bits of its mantissa.
struct TF32 : F32 {};

// 16-bit elements, accumulated in float32 and rounded once, to nearest, ties to even; two of them make a register, the
// first in its lower half. Storage has no arithmetic.
struct F16 : Float32Arithmetic {
  struct storage {
    unsigned short bits;
  };

  static __device__ __forceinline__ storage storage_zero() { return {0}; }
  static __device__ __forceinline__ accumulate load(const storage* p) { return widen(*p); }
#if TILEWRIGHT_EMULATED
  static inline accumulate widen(storage x) {
    __half half;
    half.bits = x.bits;
    return half;
  }
  static inline storage round(accumulate x) { return {__half(x).bits}; }
  static inline unsigned round_pair(accumulate low, accumulate high) {
    return round(low).bits | unsigned{round(high).bits} << 16;
  }
#else
  static __device__ __forceinline__ accumulate widen(storage x) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
  }
  static __device__ __forceinline__ storage round(accumulate x) {
    storage value;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(x));
    return value;
  }
  static __device__ __forceinline__ unsigned round_pair(accumulate low, accumulate high) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }
#endif
};

struct BF16 : Float32Arithmetic {
  struct storage {
    unsigned short bits;
  };

  static __device__ __forceinline__ storage storage_zero() { return {0}; }
  static __device__ __forceinline__ accumulate load(const storage* p) { return widen(*p); }
#if TILEWRIGHT_EMULATED
  static inline accumulate widen(storage x) {
    unsigned pattern = unsigned{x.bits} << 16;
    accumulate value;
    __builtin_memcpy(&value, &pattern, sizeof value);
    return value;
  }
  static inline storage round(accumulate x) {
    unsigned pattern;
    __builtin_memcpy(&pattern, &x, sizeof pattern);
    if (x != x) return {0x7FFF};
    return {static_cast<unsigned short>((pattern + 0x7FFF + (pattern >> 16 & 1)) >> 16)};
  }
  static inline unsigned round_pair(accumulate low, accumulate high) {
    return round(low).bits | unsigned{round(high).bits} << 16;
  }
#else
  static __device__ __forceinline__ accumulate widen(storage x) {
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
  }
  static __device__ __forceinline__ storage round(accumulate x) {
    storage value;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(value.bits) : "f"(x));
    return value;
  }
  static __device__ __forceinline__ unsigned round_pair(accumulate low, accumulate high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
  }
#endif
};

#if TILEWRIGHT_EMULATED

// The integers modulo the prime 2^61 - 1, for the emulator alone: sums of any length without rounding. In memory a
// residue is below the prime; an accumulator is any number below 2^61 + 8 with the right residue.
struct Field61 {
  using storage = unsigned long long;
  using accumulate = unsigned long long;
  static constexpr unsigned long long prime = (1ull << 61) - 1;

  // The same residue, for any x: 2^61 is 1 modulo the prime.
  static inline accumulate fold(unsigned long long x) { return (x & prime) + (x >> 61); }

  static inline accumulate zero() { return 0; }
  static inline storage storage_zero() { return 0; }
  static inline accumulate load(const storage* p) { return *p; }
  static inline accumulate widen(storage x) { return x; }
  static inline storage round(accumulate x) {
    const accumulate folded = fold(x);
    return folded >= prime ? folded - prime : folded;
  }

  static inline accumulate fma(accumulate a, accumulate b, accumulate c) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    const auto low = static_cast<unsigned long long>(product) & prime;
    const auto high = static_cast<unsigned long long>(product >> 61);
    return fold(low + high + c);
  }
  static inline accumulate mul(accumulate a, accumulate b) { return fma(a, b, 0); }
  static inline accumulate add(accumulate a, accumulate b) { return fold(a + b); }
};

#endif

}  // namespace tilewright
