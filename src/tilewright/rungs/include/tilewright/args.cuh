// The one argument of every kernel, passed by value: GemmArgs, or TmaArgs where the rung declares tensor maps.
// `run/args.py` is its host side. Sizes and leading dimensions in elements; matrices row-major; `Scalar`, the element
// of A and B, and `Output`, that of C and D, stand before this text.
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

// Maps of A, B and D as they are stored; one that isn't declared for this problem is zeros.
struct TmaArgs : GemmArgs {
  TensorMap map_a, map_b, map_d;
};

static_assert(sizeof(GemmArgs) > 128 && sizeof(GemmArgs) <= 192, "tensor maps start at byte 192, as on the host");
static_assert(sizeof(TmaArgs) == 192 + 3 * sizeof(TensorMap), "nothing lies behind the tensor maps");

}  // namespace tilewright
