// k01_uncoalesced: one thread, one result, threadIdx.x down the rows.
// builds on:      nothing
// what changes:   nothing yet; this is the mistake the next rung undoes
// should help:    not at all: neighbouring lanes read A and write D a whole row apart, 32 sectors a request
// costs:          32 times the memory traffic that the same loads need
// preconditions:  none
#include "tilewright/epilogue.cuh"

extern "C" __global__ void __launch_bounds__(BM* BN) k01_uncoalesced(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.x * BM + threadIdx.x;
  const int col = blockIdx.y * BN + threadIdx.y;
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
