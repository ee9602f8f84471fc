// t01_wmma: tensor cores through the interface that hides which lane holds what.
// builds on:      nothing; the tiles are those of the CUDA-core rungs, the elements 16-bit
// what changes:   a warp multiplies 16×16×16 in one call where a thread multiplied one pair at a time
// should help:    one warp instruction does 4096 FMAs, and each element read from shared memory feeds sixteen
// costs:          an opaque accumulator: only shared memory can turn it into rows and columns again
// preconditions:  16-bit elements, float32 accumulators; rows at any alignment, narrower loads where they must be
#include "tilewright/pairs.cuh"
#include "tilewright/tile.cuh"
#include "tilewright/wmma.cuh"

// Tiles as they are stored, so their long side depends on the layout.
using TileA = PlainTile<TRANSPOSED_A ? BK : BM, TRANSPOSED_A ? BM : BK, 8>;
using TileB = PlainTile<TRANSPOSED_B ? BN : BK, TRANSPOSED_B ? BK : BN, 8>;

constexpr Major MAJOR_A = TRANSPOSED_A ? Major::col : Major::row;
constexpr Major MAJOR_B = TRANSPOSED_B ? Major::col : Major::row;
constexpr int M_FRAGMENTS = WM / 16, N_FRAGMENTS = WN / 16;

extern "C" __global__ void __launch_bounds__(NUM_THREADS) t01_wmma(const __grid_constant__ GemmArgs args) {
  __shared__ TileA As;
  __shared__ TileB Bs;
  __shared__ __align__(32) float patches[NUM_THREADS / 32][16 * 16];  // a warp's accumulator, on its way out

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;

  WmmaAccumulator acc[M_FRAGMENTS][N_FRAGMENTS] = {};

  for (int k0 = 0; k0 < args.k; k0 += BK) {
    load_tile<LOAD_BYTES_A, NUM_THREADS>(As, source_a(args, cta_row, k0));
    load_tile<LOAD_BYTES_B, NUM_THREADS>(Bs, source_b(args, k0, cta_col));
    __syncthreads();  // the tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      WmmaA<Scalar, MAJOR_A> a[M_FRAGMENTS];
      WmmaB<Scalar, MAJOR_B> b[N_FRAGMENTS];
#pragma unroll
      for (int i = 0; i < M_FRAGMENTS; ++i) {
        const int row = warp_row + 16 * i;
        wmma_load(a[i], TRANSPOSED_A ? As.chunk(k, row) : As.chunk(row, k), TileA::stride);
      }
#pragma unroll
      for (int j = 0; j < N_FRAGMENTS; ++j) {
        const int col = warp_col + 16 * j;
        wmma_load(b[j], TRANSPOSED_B ? Bs.chunk(col, k) : Bs.chunk(k, col), TileB::stride);
      }
#pragma unroll
      for (int i = 0; i < M_FRAGMENTS; ++i) {
#pragma unroll
        for (int j = 0; j < N_FRAGMENTS; ++j) wmma(acc[i][j], a[i], b[j]);
      }
    }
    __syncthreads();  // everyone has read the tiles before the next ones overwrite them
  }

  float* patch = patches[warp];
#pragma unroll
  for (int i = 0; i < M_FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < N_FRAGMENTS; ++j) {
      wmma_store(patch, 16, acc[i][j]);
      __syncwarp();  // the patch is whole before its lanes read it
#pragma unroll
      for (int at = 2 * lane; at < 16 * 16; at += 64) {
        const int row = cta_row + warp_row + 16 * i + at / 16, col = cta_col + warp_col + 16 * j + at % 16;
        write_pair<BETA_MODE, PAIRED_OUTPUT>(args, row, col, patch + at);
      }
      __syncwarp();  // and read before the next one overwrites it
    }
  }
}
