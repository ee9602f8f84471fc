// k10_padded: each row of As is PAD elements longer than the tile.
// builds on:      k08_warp_tile
// what changes:   the stride of As, and with it the bank in which each element of a column lies
// should help:    a warp's transposed store goes to 32 banks; at a stride of BM, a multiple of 32, to a few
// costs:          shared memory; where the stride is no multiple of four, A is read 8 bytes at a time
// preconditions:  sizes in whole tiles; bases and leading dimensions in multiples of 16 bytes
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

constexpr int A_WIDTH = A_STRIDE % 4 == 0 ? 4 : 2;  // elements of As in one access, by its rows' alignment

// A tile, BM × BK, row-major in global memory → As[k][row].
__device__ __forceinline__ void stage_a(Element (&As)[BK][A_STRIDE], const Element* a, int lda) {
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

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k10_padded(const __grid_constant__ GemmArgs args) {
  __shared__ __align__(16) Element As[BK][A_STRIDE];  // transposed: k × rows, padded
  __shared__ __align__(16) Element Bs[BK][BN];        // k × columns

  // Which warp tile, and which patch of each of its sub-tiles.
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int lane_row = lane / (WSUBN / TN) * TM, lane_col = lane % (WSUBN / TN) * TN;
  const int my_row = warp_row + lane_row, my_col = warp_col + lane_col;

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const auto* a = args.a + blockIdx.z * args.batch_stride_a + cta_row * args.lda;
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + cta_col;
  const int lda = static_cast<int>(args.lda), ldb = static_cast<int>(args.ldb);

  Acc acc[WMITER * TM][WNITER * TN] = {};

  for (int k0 = 0; k0 < args.k; k0 += BK) {
    stage_a(As, a, lda);
    stage_b(Bs, b, ldb);
    a += BK;
    b += BK * args.ldb;
    __syncthreads();  // both tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Acc frag_a[WMITER * TM], frag_b[WNITER * TN];
#pragma unroll
      for (int i = 0; i < WMITER; ++i) load_fragment<TM, A_WIDTH>(frag_a + i * TM, &As[k][my_row + i * WSUBM]);
#pragma unroll
      for (int j = 0; j < WNITER; ++j) load_fragment<TN>(frag_b + j * TN, &Bs[k][my_col + j * WSUBN]);
      outer_product(acc, frag_a, frag_b);
    }
    __syncthreads();  // everyone has read before anyone overwrites
  }

#pragma unroll
  for (int i = 0; i < WMITER * TM; ++i) {
    const int row = cta_row + my_row + i / TM * WSUBM + i % TM;
#pragma unroll
    for (int j = 0; j < WNITER * TN; j += 4) {
      const int col = cta_col + my_col + j / TN * WSUBN + j % TN;
      write_results4<BETA_MODE>(args, row, col, &acc[i][j]);
    }
  }
}
