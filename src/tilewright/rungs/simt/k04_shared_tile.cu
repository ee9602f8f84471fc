// k04_shared_tile: the CTA stages square tiles of A and B in shared memory.
// builds on:      k02_coalesced
// what changes:   each element is read from global memory once per CTA instead of once per thread
// should help:    global traffic falls by the tile's edge; what remains is shared memory, two reads for one FMA
// costs:          two barriers a tile, and the shared reads that now bound it
// preconditions:  none
#include "tilewright/epilogue.cuh"

extern "C" __global__ void __launch_bounds__(BM* BN) k04_shared_tile(const __grid_constant__ GemmArgs args) {
  __shared__ Scalar::storage As[BM][BK];  // rows of the tile × k
  __shared__ Scalar::storage Bs[BK][BN];  // k × columns of the tile

  const int ty = threadIdx.y, tx = threadIdx.x;
  const int row = blockIdx.y * BM + ty;
  const int col = blockIdx.x * BN + tx;

  const auto* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda + tx;  // the element this thread stages
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + ty * args.ldb + col;

  auto acc = Scalar::zero();
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    // Stage one tile of each operand; past the edge a zero adds nothing.
    const bool a_inside = !GUARDED || (row < args.m && k0 + tx < args.k);
    const bool b_inside = !GUARDED || (k0 + ty < args.k && col < args.n);
    As[ty][tx] = a_inside ? a[k0] : Scalar::storage_zero();
    Bs[ty][tx] = b_inside ? *b : Scalar::storage_zero();
    b += BK * args.ldb;
    __syncthreads();  // both tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; ++k) acc = Scalar::fma(Scalar::load(&As[ty][k]), Scalar::load(&Bs[k][tx]), acc);
    __syncthreads();  // everyone has read before anyone overwrites
  }
  if (!GUARDED || (row < args.m && col < args.n)) write_result<BETA_MODE>(args, row, col, acc);
}
