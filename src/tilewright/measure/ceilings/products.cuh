// Operands of the tensor-core ceilings, before the kernels that are about them: whole numbers of eight bits, so that
// every element and every sum is exact. A is 16 or 64 rows and B some columns, both DEPTH along k, which is four steps
// of STEP_K. An odd step takes back what the even one before it has added, but for one or nothing of each element of A:
// so sums stay small over any number of rounds, and no product can be left out unseen. `check.py` computes the same.
#pragma once

#include "tilewright/scalar.cuh"

__device__ __forceinline__ unsigned mixed_at(unsigned index, unsigned seed) {
  const unsigned word = word_at(index, seed);
  return (word ^ word >> 15) * 2246822519u;
}

__device__ __forceinline__ bool is_odd_step(int k) { return k / STEP_K % 2 != 0; }

__device__ __forceinline__ int a_at(int row, int k, unsigned seed) {
  const unsigned word = mixed_at(row * DEPTH + k - is_odd_step(k) * STEP_K, seed);
  const int x = static_cast<int>(word >> 24) - 128;
  return is_odd_step(k) ? static_cast<int>(word >> 23 & 1) - x : x;
}

__device__ __forceinline__ int b_at(int k, int col, unsigned seed) {
  return static_cast<int>(mixed_at(col * DEPTH + k - is_odd_step(k) * STEP_K, ~seed) >> 24) - 128;
}

// A thread's result: its sums, each times another number, so that no two can stand for each other.
__device__ __forceinline__ unsigned weighed(float sum, int place) {
  return static_cast<unsigned>(static_cast<int>(sum)) * (place + 1);
}
