// 16-bit floating point as bits, and float. Owns the conversions both ways; CUDA's names for them are half.hpp's.
#pragma once

#include <stdint.h>
#include <string.h>

inline uint32_t float_bits(float value) {
  uint32_t pattern;
  memcpy(&pattern, &value, sizeof pattern);
  return pattern;
}

inline float float_of_bits(uint32_t pattern) {
  float value;
  memcpy(&value, &pattern, sizeof value);
  return value;
}

// To nearest, ties to even. Adding a power of two drops the bits below a subnormal's last.
inline uint16_t round_to_half(float value) {
  constexpr uint32_t infinity = 0x7F800000, past_largest = 0x47800000, smallest_normal = 0x38800000;
  uint32_t pattern = float_bits(value), magnitude = pattern & 0x7FFFFFFF, sign = pattern >> 16 & 0x8000;
  uint32_t rounded;
  if (magnitude > infinity)
    rounded = 0x7E00;
  else if (magnitude >= past_largest)
    rounded = 0x7C00;
  else if (magnitude < smallest_normal)
    rounded = float_bits(float_of_bits(magnitude) + 0.5f) - float_bits(0.5f);
  else
    rounded = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  return static_cast<uint16_t>(sign | rounded);
}

inline float widen_half(uint16_t half) {
  uint32_t sign = uint32_t{half} << 16 & 0x80000000, magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) return float_of_bits(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  float value = float_of_bits(magnitude << 13) * float_of_bits(0x77800000);  // times 2^112: the exponents' biases apart
  return float_of_bits(sign | float_bits(value));
}
