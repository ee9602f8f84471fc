// k14_warp_specialised: four warps copy, the others multiply, and a ring of stages with two barriers each between.
// builds on:      k13_multistage
// what changes:   copies are other warps' business; each warp that multiplies waits for a stage, and gives it back, on
//                 its own; registers go where the sums are
// should help:    the FMA warps issue next to nothing but FMAs, and no barrier stops them all at once
// costs:          four warps that compute nothing; one CTA an SM
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/stage_ring.cuh"

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1)
    k14_warp_specialised(const __grid_constant__ GemmArgs args) {
  StageRing& ring = *reinterpret_cast<StageRing*>(dynamic_smem());

  if (threadIdx.x == 0) ring.init();
  __syncthreads();  // the barriers are there before anyone waits for them
  wait_for_previous_kernel();

  const OutputTile tile(args, blockIdx.x);
  const int steps = steps_of(args);
  Slot slot;
  if (threadIdx.x >= MATH_THREADS) {
    release_registers<COPY_REGISTERS>();
    copy_steps(args, tile, 0, steps, ring, slot);
    end_copies(ring, slot);
    return;
  }
  acquire_registers<MATH_REGISTERS>();
  const ThreadPlace place(threadIdx.x);
  ThreadFragments fragments[2];
  ThreadSums sums = {};
  mbarrier_wait(&ring.full[0], 0);
  if (steps > 0) load_first(fragments, ring, place);
  multiply_stages(sums, fragments, ring, slot, place, 2 * steps, false);
  let_next_kernel_start();
  write_sums(args, tile, place, sums);
}
