// Fragments: the elements of one operand that a thread holds in registers for one k.
// Owns how they are read from shared memory and multiplied; which elements, and from which layout, is the kernel's.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

template <int COUNT>
__device__ __forceinline__ void widen(Scalar::accumulate* fragment, const Vec<Scalar::storage, COUNT>& word) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) fragment[i] = Scalar::widen(word[i]);
}

// COUNT neighbours, WIDTH (2 or 4) an access; COUNT is a multiple of WIDTH and `from` is aligned to WIDTH elements.
template <int COUNT, int WIDTH = 4>
__device__ __forceinline__ void load_fragment(Scalar::accumulate* fragment, const Scalar::storage* from) {
  static_assert((WIDTH == 2 || WIDTH == 4) && COUNT % WIDTH == 0, "a fragment is read in whole accesses");
#pragma unroll
  for (int i = 0; i < COUNT; i += WIDTH) {
    if constexpr (WIDTH == 4) {
      widen(fragment + i, load4(from + i));
    } else {
      widen(fragment + i, load2(from + i));
    }
  }
}

// acc[i][j] += a[i] * b[j], every row in the other direction from the last. Each FMA then shares a factor with the one
// before it, at the turns too, and the register file, which cannot deliver three operands a cycle, is asked for two.
template <int M, int N>
__device__ __forceinline__ void outer_product(Scalar::accumulate (&acc)[M][N], const Scalar::accumulate (&a)[M],
                                              const Scalar::accumulate (&b)[N]) {
#pragma unroll
  for (int i = 0; i < M; ++i) {
#pragma unroll
    for (int step = 0; step < N; ++step) {
      const int j = i % 2 == 0 ? step : N - 1 - step;
      acc[i][j] = Scalar::fma(a[i], b[j], acc[i][j]);
    }
  }
}

}  // namespace tilewright
