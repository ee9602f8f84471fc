// Fragments: the elements of one operand that a thread holds in registers for one k.
// Owns how they are read from shared memory; which elements, and from which layout, is the kernel's.
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

}  // namespace tilewright
