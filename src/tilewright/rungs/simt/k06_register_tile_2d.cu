// k06_register_tile_2d: one thread, a patch of TM×TN results, an outer product for each k.
// builds on:      k05_register_tile_1d
// what changes:   elements of A are kept in registers as well, and each serves TN results
// should help:    TM+TN shared reads for TM·TN FMAs
// costs:          TM·TN accumulators a thread, hence occupancy; too many spill to memory
// preconditions:  offsets inside a tile fit 32 bits
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

// A tile, BM × BK, as it lies in global memory; `rows` and `depth` are what is left of the matrix.
__device__ __forceinline__ void stage_a(Element (&As)[BM][BK], const Element* a, int lda, int rows, int depth) {
#pragma unroll
  for (int pass = 0; pass < BM * BK; pass += NUM_THREADS) {
    const int row = (pass + threadIdx.x) / BK, k = (pass + threadIdx.x) % BK;
    const bool inside = !GUARDED || (row < rows && k < depth);
    As[row][k] = inside ? a[row * lda + k] : Scalar::storage_zero();
  }
}

// B tile, BK × BN, likewise.
__device__ __forceinline__ void stage_b(Element (&Bs)[BK][BN], const Element* b, int ldb, int depth, int cols) {
#pragma unroll
  for (int pass = 0; pass < BK * BN; pass += NUM_THREADS) {
    const int k = (pass + threadIdx.x) / BN, col = (pass + threadIdx.x) % BN;
    const bool inside = !GUARDED || (k < depth && col < cols);
    Bs[k][col] = inside ? b[k * ldb + col] : Scalar::storage_zero();
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k06_register_tile_2d(const __grid_constant__ GemmArgs args) {
  __shared__ Element As[BM][BK];  // rows of the tile × k
  __shared__ Element Bs[BK][BN];  // k × columns of the tile

  const int my_row = threadIdx.x / (BN / TN) * TM, my_col = threadIdx.x % (BN / TN) * TN;

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const auto* a = args.a + blockIdx.z * args.batch_stride_a + cta_row * args.lda;
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + cta_col;
  const int lda = static_cast<int>(args.lda), ldb = static_cast<int>(args.ldb);

  Acc acc[TM][TN] = {};
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    stage_a(As, a, lda, args.m - cta_row, args.k - k0);
    stage_b(Bs, b, ldb, args.k - k0, args.n - cta_col);
    a += BK;
    b += BK * args.ldb;
    __syncthreads();  // both tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Acc frag_a[TM], frag_b[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) frag_a[i] = Scalar::load(&As[my_row + i][k]);
#pragma unroll
      for (int j = 0; j < TN; ++j) frag_b[j] = Scalar::load(&Bs[k][my_col + j]);
      outer_product(acc, frag_a, frag_b);  // TM·TN FMAs from TM + TN elements
    }
    __syncthreads();  // everyone has read before anyone overwrites
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int row = cta_row + my_row + i, col = cta_col + my_col + j;
      if (!GUARDED || (row < args.m && col < args.n)) write_result<BETA_MODE>(args, row, col, acc[i][j]);
    }
  }
}
