// t03_swizzled: chunks of a tile in other places, so that the eight rows of a matrix lie in different banks.
// builds on:      t02_mma_sync
// what changes:   PlainTile becomes SwizzledTile: the chunk's place in its row is turned by an XOR with the row
// should help:    ldmatrix reads eight rows in one wavefront in place of four or eight; nothing is wasted on padding
// costs:          an XOR in every address, and tiles whose rows fill the banks evenly
// preconditions:  as before; the tile's rows are 16, 32 or a multiple of 64 elements
#include "tilewright/tensor_tile.cuh"

using TileA = SwizzledTile<TRANSPOSED_A ? BK : BM, TRANSPOSED_A ? BM : BK>;
using TileB = SwizzledTile<TRANSPOSED_B ? BN : BK, TRANSPOSED_B ? BK : BN>;

extern "C" __global__ void __launch_bounds__(NUM_THREADS) t03_swizzled(const __grid_constant__ GemmArgs args) {
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
