// t04_multistage: several tiles on their way while one is multiplied, fragments one step ahead of the product.
// builds on:      t03_swizzled
// what changes:   tiles are copied asynchronously into a ring of stages; within a tile, the next step's fragments are
//                 loaded while the tensor cores multiply this step's
// should help:    global latency hides behind STAGES - 1 tiles of arithmetic, that of shared memory behind one step
// costs:          STAGES times the shared memory, twice the fragment registers
// preconditions:  rows aligned to 4 bytes at least, the smallest asynchronous copy
#include "tilewright/ceil_div.cuh"
#include "tilewright/dependent.cuh"
#include "tilewright/tensor_tile.cuh"

using TileA = SwizzledTile<TRANSPOSED_A ? BK : BM, TRANSPOSED_A ? BM : BK>;
using TileB = SwizzledTile<TRANSPOSED_B ? BN : BK, TRANSPOSED_B ? BK : BN>;

struct Stage {
  TileA As;
  TileB Bs;
};

extern "C" __global__ void __launch_bounds__(NUM_THREADS) t04_multistage(const __grid_constant__ GemmArgs args) {
  Stage* stages = reinterpret_cast<Stage*>(dynamic_smem());  // STAGES of them

  const int warp = threadIdx.x / 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const int tiles = ceil_div(args.k, BK);

  // The next tile, number `tile`, into its stage. Past the last one the group is empty, so that waits count the same.
  TileSource next_a = source_a(args, cta_row, 0), next_b = source_b(args, 0, cta_col);
  auto fetch = [&](int tile) {
    if (tile < tiles) {
      Stage& stage = stages[tile % STAGES];
      copy_tile<LOAD_BYTES_A, NUM_THREADS>(stage.As, next_a);
      copy_tile<LOAD_BYTES_B, NUM_THREADS>(stage.Bs, next_b);
      next_a.advance<TRANSPOSED_A>(BK);
      next_b.advance<!TRANSPOSED_B>(BK);
    }
    cp_async_commit();
  };

  WarpAccumulators acc = {};
  WarpFragments fragments[2];

  wait_for_previous_kernel();
#pragma unroll
  for (int tile = 0; tile < STAGES - 1; ++tile) fetch(tile);
  cp_async_wait<STAGES - 2>();
  __syncthreads();  // the first stage is whole before anyone reads it
  if (tiles > 0) load_fragments(fragments[0], stages[0].As, stages[0].Bs, warp_row, warp_col, 0);

  for (int tile = 0; tile < tiles; ++tile) {
    const Stage& stage = stages[tile % STAGES];
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      if (k + 16 < BK) {
        load_fragments(fragments[(k / 16 + 1) % 2], stage.As, stage.Bs, warp_row, warp_col, k + 16);
      } else {
        cp_async_wait<STAGES - 2>();
        __syncthreads();  // the next stage is whole, and everyone has read this one before it is filled again
        const Stage& next = stages[(tile + 1) % STAGES];
        if (tile + 1 < tiles) load_fragments(fragments[0], next.As, next.Bs, warp_row, warp_col, 0);
      }
      if (k == 0) fetch(tile + STAGES - 1);  // behind the fragments, since those are waited for sooner
      multiply(acc, fragments[k / 16 % 2]);
    }
  }
  let_next_kernel_start();
  write_accumulators(args, cta_row + warp_row, cta_col + warp_col, acc);
}
