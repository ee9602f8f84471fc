// t07_persistent: as many CTAs as there are SMs, each taking one tile of D after the other, in an order that shares.
// builds on:      t06_warp_specialised
// what changes:   a CTA loops over tiles; its producer goes on to the next one while consumers write their results
// should help:    no CTA starts cold; tiles in flight at one time share rows of A and columns of B in the L2
// costs:          tiles are dealt out in equal counts: the last round may leave SMs idle
// preconditions:  as before
#include "tilewright/dependent.cuh"
#include "tilewright/raster.cuh"
#include "tilewright/wgmma_tile.cuh"

struct Shared {
  Stage stages[STAGES];
  Mbarrier full[STAGES];   // one arrival and the stage's bytes: its tiles have come
  Mbarrier empty[STAGES];  // an arrival of each consuming warp: its products have read it
};

constexpr int CONSUMER_ROWS = BM / CONSUMERS, CONSUMER_WARPS = 4 * CONSUMERS;

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1) t07_persistent(const __grid_constant__ TmaArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  const int tile_rows = tile_rows_of(args), tile_cols = tile_cols_of(args), tiles = tiles_of(args);
  const int steps = ceil_div(args.k, TILE_K);

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&shared.full[i], 1);
      mbarrier_init(&shared.empty[i], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there before anyone waits for them
  wait_for_previous_kernel();

  const int warpgroup = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp has one
  Slot slot;  // goes on from tile to tile, as the ring does
  if (warpgroup == 0) {
    release_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x != 0) return;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
      const TileIndex tile = tile_at(index, tile_rows, tile_cols);
      for (int step = 0; step < steps; ++step, slot.advance()) {
        mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
        shared.stages[slot.stage].load(args, &shared.full[slot.stage], tile.row * BM, tile.col * BN, step * TILE_K,
                                       tile.entry);
      }
    }
    return;
  }

  acquire_registers<CONSUMER_REGISTERS>();
  const int row = (warpgroup - 1) * CONSUMER_ROWS;
  auto release = [&](int stage) {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&shared.empty[stage]);
  };
  for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
    Sums<CONSUMER_ROWS / WARPGROUP_ROWS> sums;

    int previous = 0;  // the stage whose products may still run
    for (int step = 0; step < steps; ++step, slot.advance()) {
      mbarrier_wait(&shared.full[slot.stage], slot.parity);
      wgmma_fence();  // the sums are the tensor cores' from here
      multiply(sums, shared.stages[slot.stage], row, step == 0);
      wgmma_commit();
      wgmma_wait<1>();  // the products of the step before are done, this step's run on
      if (step > 0) release(previous);
      previous = slot.stage;
    }
    const TileIndex tile = tile_at(index, tile_rows, tile_cols);  // computed beside the last products
    wgmma_wait<0>();
    settle(sums);
    if (index + static_cast<int>(gridDim.x) >= tiles) let_next_kernel_start();
    if (steps == 0) clear(sums);
    if (steps > 0) release(previous);
    write_sums(entry_of(args, tile.entry), tile.row * BM + row, tile.col * BN, sums);
  }
}
