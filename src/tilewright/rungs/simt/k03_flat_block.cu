// k03_flat_block: the block is one row of threads, and row and column come out of a division.
// builds on:      k02_coalesced
// what changes:   one dimension of threads instead of two; the mapping of threads to results is the same
// should help:    not at all: this is the control that shows how large a difference nothing makes
// costs:          nothing
// preconditions:  none
#include "tilewright/epilogue.cuh"

extern "C" __global__ void __launch_bounds__(BM* BN) k03_flat_block(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * BM + threadIdx.x / BN;
  const int col = blockIdx.x * BN + threadIdx.x % BN;
  if (GUARDED && (row >= args.m || col >= args.n)) return;

  const auto* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda;  // this row of A
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + col;             // this column of B

  auto acc = Scalar::zero();
  for (int k = 0; k < args.k; ++k) {
    acc = Scalar::fma(Scalar::load(a + k), Scalar::load(b), acc);
    b += args.ldb;
  }
  write_result<BETA_MODE>(args, row, col, acc);
}
