// CUDA's 16-bit floating-point type for a host compiler: storage of 16 bits, arithmetic in float with one rounding.
#pragma once

#include "half_bits.hpp"

struct __half {
  uint16_t bits;

  __half() = default;
  __half(float value) : bits(round_to_half(value)) {}
  operator float() const { return widen_half(bits); }
};

using half = __half;

struct __attribute__((aligned(4))) __half2 {
  __half x, y;
};
using half2 = __half2;

inline __half __float2half(float value) { return value; }
inline __half __float2half_rn(float value) { return value; }
inline float __half2float(__half value) { return value; }
inline __half __hadd(__half a, __half b) { return float(a) + float(b); }
inline __half __hsub(__half a, __half b) { return float(a) - float(b); }
inline __half __hmul(__half a, __half b) { return float(a) * float(b); }
inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half __low2half(__half2 pair) { return pair.x; }
inline __half __high2half(__half2 pair) { return pair.y; }
inline float2 __half22float2(__half2 pair) { return {pair.x, pair.y}; }
