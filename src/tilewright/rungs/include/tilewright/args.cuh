// The one argument of every kernel, passed by value. `run/args.py` is its host side. Sizes and leading dimensions in
// elements; matrices row-major; `Scalar`, the element of A and B, and `Output`, that of C and D, stand before this
// text.
#pragma once

#include "tilewright/tensor_map.cuh"

namespace tilewright {

struct GemmArgs {
  int m, n, k, batch;
  const Scalar::storage* a;
  const Scalar::storage* b;
  const Output::storage* c;
  Output::storage* d;
  long long lda, ldb, ldc, ldd;
  long long batch_stride_a, batch_stride_b, batch_stride_c, batch_stride_d;
  Scalar::accumulate alpha, beta;
  const Scalar::storage* bias;  // n elements, where the epilogue asks for them
  void* workspace;
  unsigned* flags;
};

// The same with what TMA is told of the matrices, for the rungs that declare tensor maps.
struct TmaArgs : GemmArgs {
  TensorMap map_a, map_b, map_d;
};

}  // namespace tilewright
