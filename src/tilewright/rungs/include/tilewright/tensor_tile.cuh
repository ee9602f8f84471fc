// A warp's WM×WN part of a product on tensor cores: fragments from tiles in shared memory, their product, results to D.
// Expects BM, BN, BK, WM, WN, TRANSPOSED_A, TRANSPOSED_B, BETA_MODE and PAIRED_OUTPUT. Owns which lane holds what.
#pragma once

#include "tilewright/matrix.cuh"
#include "tilewright/mma.cuh"
#include "tilewright/pairs.cuh"
#include "tilewright/tile.cuh"

namespace tilewright {

constexpr int M_FRAGMENTS = WM / 16, N_FRAGMENTS = WN / 8;

// One step of 16 along k.
struct WarpFragments {
  unsigned a[M_FRAGMENTS][4];
  unsigned b[N_FRAGMENTS][2];
};

struct WarpAccumulators {
  float x[M_FRAGMENTS][N_FRAGMENTS][4];
};

// Four 8×8 matrices of a tile whose rows run along k, or across it: those at (outer, k), (outer + 8, k), … in the order
// that `outer_first` says. A lane points to one row of one matrix.
template <bool ALONG_K, bool OUTER_FIRST, typename Tile>
__device__ __forceinline__ void load_four(unsigned (&registers)[4], const Tile& tile, int outer, int k) {
  const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
  outer += (OUTER_FIRST ? matrix % 2 : matrix / 2) * 8;
  const int in_k = (OUTER_FIRST ? matrix / 2 : matrix % 2) * 8;  // k is a multiple of 16
  ldmatrix<4, !ALONG_K>(registers, ALONG_K ? tile.chunk(outer + row, in_k, k) : tile.chunk(k + in_k + row, outer));
}

// The fragments of one step along k, from `k` of the tiles on, for the warp's corner (row, col) of the CTA tile.
template <typename TileA, typename TileB>
__device__ __forceinline__ void load_fragments(WarpFragments& to, const TileA& As, const TileB& Bs, int row, int col,
                                               int k) {
#pragma unroll
  for (int i = 0; i < M_FRAGMENTS; ++i) load_four<!TRANSPOSED_A, true>(to.a[i], As, row + 16 * i, k);
#pragma unroll
  for (int j = 0; j < N_FRAGMENTS; j += 2) {
    unsigned two[4];
    load_four<TRANSPOSED_B, false>(two, Bs, col + 8 * j, k);
    to.b[j][0] = two[0], to.b[j][1] = two[1], to.b[j + 1][0] = two[2], to.b[j + 1][1] = two[3];
  }
}

__device__ __forceinline__ void multiply(WarpAccumulators& acc, const WarpFragments& fragments) {
#pragma unroll
  for (int i = 0; i < M_FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < N_FRAGMENTS; ++j) mma_16x8x16<Scalar>(acc.x[i][j], fragments.a[i], fragments.b[j]);
  }
}

// The warp's results, whose first is (row, col) of D.
__device__ __forceinline__ void write_accumulators(const GemmArgs& args, int row, int col,
                                                   const WarpAccumulators& acc) {
  const int lane = threadIdx.x % 32;
  row += lane / 4;
  col += lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < M_FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < N_FRAGMENTS; ++j) {
      write_pair<BETA_MODE, PAIRED_OUTPUT>(args, row + 16 * i, col + 8 * j, acc.x[i][j]);
      write_pair<BETA_MODE, PAIRED_OUTPUT>(args, row + 16 * i + 8, col + 8 * j, acc.x[i][j] + 2);
    }
  }
}

}  // namespace tilewright
