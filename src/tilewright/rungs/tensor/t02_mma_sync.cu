// t02_mma_sync: the tensor core's own instruction, its fragments in known registers.
// builds on:      t01_wmma
// what changes:   ldmatrix hands each lane the elements that mma wants from it, and the lane knows which results it
// holds should help:    results go from registers to D without a detour, and fragments come in one instruction for four
// 8×8
//                 matrices
// costs:          the layout of fragments is now the kernel's business; rows of a tile meet in the same banks
// preconditions:  16-bit elements, float32 accumulators; rows at any alignment, narrower loads where they must be
#include "tilewright/tensor_tile.cuh"

using TileA = PlainTile<TRANSPOSED_A ? BK : BM, TRANSPOSED_A ? BM : BK>;
using TileB = PlainTile<TRANSPOSED_B ? BN : BK, TRANSPOSED_B ? BK : BN>;

extern "C" __global__ void __launch_bounds__(NUM_THREADS) t02_mma_sync(const __grid_constant__ GemmArgs args) {
  __shared__ TileA As;
  __shared__ TileB Bs;

  const int warp = threadIdx.x / 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;

  WarpAccumulators acc = {};

  for (int k0 = 0; k0 < args.k; k0 += BK) {
    load_tile<LOAD_BYTES_A, NUM_THREADS>(As, source_a(args, cta_row, k0));
    load_tile<LOAD_BYTES_B, NUM_THREADS>(Bs, source_b(args, k0, cta_col));
    __syncthreads();  // the tiles are whole before anyone reads them

#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      WarpFragments fragments;
      load_fragments(fragments, As, Bs, warp_row, warp_col, k);
      multiply(acc, fragments);
    }
    __syncthreads();  // everyone has read the tiles before the next ones overwrite them
  }
  write_accumulators(args, cta_row + warp_row, cta_col + warp_col, acc);
}
