// k07_vectorised: every copy and every fragment 16 bytes at a time.
// builds on:      k06_register_tile_2d
// what changes:   four neighbours move in one instruction; A is stored transposed, so its fragments are neighbours
// should help:    a quarter of the load instructions, so the FMAs get the issue slots; fewer registers
// costs:          the guards, alignment that callers must bring, bank conflicts in the transposed store of A
// preconditions:  sizes in whole tiles; bases and leading dimensions in multiples of 16 bytes
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

// A tile, BM × BK, row-major in global memory → As[k][row].
__device__ __forceinline__ void stage_a(Element (&As)[BK][BM], const Element* a, int lda) {
  const int row = threadIdx.x / (BK / 4);
  const int k = threadIdx.x % (BK / 4) * 4;
#pragma unroll
  for (int r = 0; r < BM; r += ROW_STRIDE_A) {
    const Vec4<Element> four = load4(a + (row + r) * lda + k);
#pragma unroll
    for (int i = 0; i < 4; ++i) As[k + i][row + r] = four[i];
  }
}

// B tile, BK × BN, the same way round → Bs[k][col].
__device__ __forceinline__ void stage_b(Element (&Bs)[BK][BN], const Element* b, int ldb) {
  const int k = threadIdx.x / (BN / 4);
  const int col = threadIdx.x % (BN / 4) * 4;
#pragma unroll
  for (int r = 0; r < BK; r += ROW_STRIDE_B) store4(&Bs[k + r][col], load4(b + (k + r) * ldb + col));
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k07_vectorised(const __grid_constant__ GemmArgs args) {
  __shared__ __align__(16) Element As[BK][BM];  // transposed: k × rows
  __shared__ __align__(16) Element Bs[BK][BN];  // k × columns

  const int my_row = threadIdx.x / (BN / TN) * TM, my_col = threadIdx.x % (BN / TN) * TN;

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const auto* a = args.a + blockIdx.z * args.batch_stride_a + cta_row * args.lda;
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + cta_col;
  const int lda = static_cast<int>(args.lda), ldb = static_cast<int>(args.ldb);

  Acc acc[TM][TN] = {};

  for (int k0 = 0; k0 < args.k; k0 += BK) {
    stage_a(As, a, lda);
    stage_b(Bs, b, ldb);
    a += BK;
    b += BK * args.ldb;
    __syncthreads();  // both tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Acc frag_a[TM], frag_b[TN];
      load_fragment<TM>(frag_a, &As[k][my_row]);
      load_fragment<TN>(frag_b, &Bs[k][my_col]);
      outer_product(acc, frag_a, frag_b);
    }
    __syncthreads();  // everyone has read before anyone overwrites
  }

#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      write_results4<BETA_MODE>(args, cta_row + my_row + i, cta_col + my_col + j, &acc[i][j]);
    }
  }
}
