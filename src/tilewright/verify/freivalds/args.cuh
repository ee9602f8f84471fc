// Stands before both kernels, after `Element`: the one argument, and the hash that data and weights come from.
// `kernels.py` is the struct's host side, `check.py` computes the same weights.
#pragma once

struct FreivaldsArgs {
  Element::storage* matrix;
  const unsigned long long* weights;  // null: the hash's
  unsigned long long* sums;           // one for each row
  long long rows, cols, row_step, col_step;
  unsigned long long seed;
  float low, high;  // of what `fill` writes
  unsigned whole;   // whether that is integers without 0, or any numbers
  unsigned kept;    // of 2^32, how many of a row are not zeros
  long long edge;   // of the first and last columns so many are all kept
};

__device__ __forceinline__ unsigned long long hash_of(unsigned long long index, unsigned long long seed) {
  unsigned long long x = (index + seed) * 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ull;
  return x ^ (x >> 32);
}
