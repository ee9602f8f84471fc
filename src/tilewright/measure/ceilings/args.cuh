// Stands before every ceiling's kernel, after its constants: the one argument, and the data that checks are made with.
// `kernels.py` is the struct's host side, `check.py` computes the same words.
#pragma once

#include "tilewright/memory.cuh"

struct CeilingArgs {
  const unsigned* source;  // count vectors of four words, where the kernel reads global memory
  unsigned* out;           // one word a thread, or an array of threads × repeats vectors
  unsigned count;
  unsigned repeats;  // what one thread does: vectors moved, or rounds of its loop
  unsigned seed;
};

__device__ __forceinline__ unsigned word_at(unsigned index, unsigned seed) { return index * 2654435761u + seed; }

__device__ __forceinline__ unsigned sum_of(const tilewright::Vec4<unsigned>& four) {
  return four[0] + four[1] + four[2] + four[3];
}
