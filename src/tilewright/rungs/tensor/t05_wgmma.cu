// t05_wgmma: Hopper's tensor cores, which read both operands from shared memory, and its copies, which need one thread.
// builds on:      t04_multistage
// what changes:   TMA copies whole boxes and swizzles them; wgmma multiplies 64×BN with four warps at once, beside them
// should help:    no fragments in registers, no ldmatrix, no addresses: the tensor cores' full rate is within reach
// costs:          sm_90a alone; rows and addresses in multiples of 16 bytes; barriers that count bytes
// preconditions:  as TMA's: 16-byte rows and bases; TF32 with both operands along k (NT)
#include "tilewright/dependent.cuh"
#include "tilewright/wgmma_tile.cuh"

extern "C" __global__ void __launch_bounds__(NUM_THREADS) t05_wgmma(const __grid_constant__ TmaArgs args) {
  Stage* stages = reinterpret_cast<Stage*>(dynamic_smem());       // STAGES of them
  Mbarrier* full = reinterpret_cast<Mbarrier*>(stages + STAGES);  // of each stage: its bytes have come

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const int steps = ceil_div(args.k, TILE_K);

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) mbarrier_init(&full[i], 1);
    fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there before anyone waits for them
  wait_for_previous_kernel();

  auto fetch = [&](int step, int stage) {
    if (threadIdx.x == 0 && step < steps)
      stages[stage].load(args, &full[stage], cta_row, cta_col, step * TILE_K, blockIdx.z);
  };
  for (int step = 0; step < STAGES; ++step) fetch(step, step);

  Sums<BM / WARPGROUP_ROWS> sums;

  Slot slot;
  for (int step = 0; step < steps; ++step, slot.advance()) {
    mbarrier_wait(&full[slot.stage], slot.parity);
    wgmma_fence();  // the sums are the tensor cores' from here
    multiply(sums, stages[slot.stage], 0, step == 0);
    wgmma_commit();
    wgmma_wait<0>();
    settle(sums);
    __syncthreads();  // all four warps' products have read the stage before it is filled again
    fetch(step + STAGES, slot.stage);
  }
  let_next_kernel_start();
  if (steps == 0) clear(sums);
  write_sums(args, cta_row, cta_col, sums);
}
