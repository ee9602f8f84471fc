// t06_warp_specialised: one warpgroup copies, the others multiply, and a ring of stages with two barriers each between.
// builds on:      t05_wgmma
// what changes:   a producer runs ahead of its consumers as far as stages are empty; registers go where the sums are
// should help:    tensor cores never wait for a copy to be asked for, nor for each other; larger tiles, so less traffic
// costs:          a warpgroup that computes nothing; one CTA an SM; its epilogue is not hidden
// preconditions:  as before
#include "tilewright/dependent.cuh"
#include "tilewright/wgmma_tile.cuh"

struct Shared {
  Stage stages[STAGES];
  Mbarrier full[STAGES];   // one arrival and the stage's bytes: its tiles have come
  Mbarrier empty[STAGES];  // an arrival of each consuming warp: its products have read it
};

constexpr int CONSUMER_ROWS = BM / CONSUMERS, CONSUMER_WARPS = 4 * CONSUMERS;

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1)
    t06_warp_specialised(const __grid_constant__ TmaArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
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
  Slot slot;
  if (warpgroup == 0) {
    release_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x == 0) {
      for (int step = 0; step < steps; ++step, slot.advance()) {
        mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
        shared.stages[slot.stage].load(args, &shared.full[slot.stage], cta_row, cta_col, step * TILE_K, blockIdx.z);
      }
    }
    return;
  }

  acquire_registers<CONSUMER_REGISTERS>();
  const int row = (warpgroup - 1) * CONSUMER_ROWS;
  Sums<CONSUMER_ROWS / WARPGROUP_ROWS> sums;

  int previous = 0;  // the stage whose products may still run
  for (int step = 0; step < steps; ++step, slot.advance()) {
    mbarrier_wait(&shared.full[slot.stage], slot.parity);
    wgmma_fence();  // the sums are the tensor cores' from here
    multiply(sums, shared.stages[slot.stage], row, step == 0);
    wgmma_commit();
    wgmma_wait<1>();  // the products of the step before are done, this step's run on
    if (step > 0 && threadIdx.x % 32 == 0) mbarrier_arrive(&shared.empty[previous]);
    previous = slot.stage;
  }
  wgmma_wait<0>();
  settle(sums);
  let_next_kernel_start();
  if (steps == 0) clear(sums);
  write_sums(args, cta_row + row, cta_col, sums);
}
