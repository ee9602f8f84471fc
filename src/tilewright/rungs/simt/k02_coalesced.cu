// k02_coalesced: one thread, one result, threadIdx.x along the columns.
// builds on:      k01_uncoalesced
// what changes:   the two index lines are swapped
// should help:    a warp reads 32 neighbours of B and one shared element of A, writes 32 neighbours of D
// costs:          nothing
// preconditions:  none
#include "tilewright/epilogue.cuh"

extern "C" __global__ void __launch_bounds__(BM* BN) k02_coalesced(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * BM + threadIdx.y;
  const int col = blockIdx.x * BN + threadIdx.x;
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
