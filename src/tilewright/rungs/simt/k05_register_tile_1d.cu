// k05_register_tile_1d: one thread, TM results of one column, kept in registers.
// builds on:      k04_shared_tile
// what changes:   an element of B, once read from shared memory, serves TM results
// should help:    TM+1 shared reads for TM FMAs in place of 2·TM, and larger tiles from as many threads
// costs:          TM accumulators a thread
// preconditions:  none
#include "tilewright/epilogue.cuh"

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k05_register_tile_1d(const __grid_constant__ GemmArgs args) {
  __shared__ Scalar::storage As[BM][BK];  // rows of the tile × k
  __shared__ Scalar::storage Bs[BK][BN];  // k × columns of the tile

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const int my_row = threadIdx.x / BN * TM, my_col = threadIdx.x % BN;  // the results of this thread
  const int a_row = threadIdx.x / BK, a_k = threadIdx.x % BK;           // the element of A it stages
  const int b_k = threadIdx.x / BN, b_col = threadIdx.x % BN;           // the element of B it stages

  const auto* a = args.a + blockIdx.z * args.batch_stride_a + (cta_row + a_row) * args.lda + a_k;
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + b_k * args.ldb + cta_col + b_col;

  Scalar::accumulate acc[TM] = {};
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    // Stage one tile of each operand; past the edge a zero adds nothing.
    const bool a_inside = !GUARDED || (cta_row + a_row < args.m && k0 + a_k < args.k);
    const bool b_inside = !GUARDED || (k0 + b_k < args.k && cta_col + b_col < args.n);
    As[a_row][a_k] = a_inside ? a[k0] : Scalar::storage_zero();
    Bs[b_k][b_col] = b_inside ? *b : Scalar::storage_zero();
    b += BK * args.ldb;
    __syncthreads();  // both tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const auto shared_by_all = Scalar::load(&Bs[k][my_col]);
#pragma unroll
      for (int i = 0; i < TM; ++i) acc[i] = Scalar::fma(Scalar::load(&As[my_row + i][k]), shared_by_all, acc[i]);
    }
    __syncthreads();  // everyone has read before anyone overwrites
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int row = cta_row + my_row + i, col = cta_col + my_col;
    if (!GUARDED || (row < args.m && col < args.n)) write_result<BETA_MODE>(args, row, col, acc[i]);
  }
}
