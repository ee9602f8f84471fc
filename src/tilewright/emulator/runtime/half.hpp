// CUDA's 16-bit floating-point type for a host compiler: storage of 16 bits, arithmetic in float with one rounding.
#pragma once

#include <stdint.h>
#include <string.h>

struct __half {
  uint16_t bits;

  __half() = default;
  __half(float value) : bits(round(value)) {}
  operator float() const { return widen(bits); }

 private:
  static uint32_t float_bits(float value) {
    uint32_t pattern;
    memcpy(&pattern, &value, sizeof pattern);
    return pattern;
  }
  static float from_bits(uint32_t pattern) {
    float value;
    memcpy(&value, &pattern, sizeof value);
    return value;
  }

  // To nearest, ties to even. Adding a power of two drops the bits below a subnormal's last.
  static uint16_t round(float value) {
    constexpr uint32_t infinity = 0x7F800000, past_largest = 0x47800000, smallest_normal = 0x38800000;
    uint32_t pattern = float_bits(value), magnitude = pattern & 0x7FFFFFFF, sign = pattern >> 16 & 0x8000;
    uint32_t rounded;
    if (magnitude > infinity)
      rounded = 0x7E00;
    else if (magnitude >= past_largest)
      rounded = 0x7C00;
    else if (magnitude < smallest_normal)
      rounded = float_bits(from_bits(magnitude) + 0.5f) - float_bits(0.5f);
    else
      rounded = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    return static_cast<uint16_t>(sign | rounded);
  }

  static float widen(uint16_t half) {
    uint32_t sign = uint32_t{half} << 16 & 0x80000000, magnitude = half & 0x7FFF;
    if (magnitude >= 0x7C00) return from_bits(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
    float value = from_bits(magnitude << 13) * from_bits(0x77800000);  // times 2^112: the exponents' biases apart
    return from_bits(sign | float_bits(value));
  }
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
