// k15_split_k: several CTAs for one tile of D, each for a slice of k; the last to come adds the slices in their order.
// builds on:      k13_multistage
// what changes:   SPLIT_K times the CTAs; partial sums meet in a workspace in global memory
// should help:    a small D, whose tiles leave most SMs idle, and a long k
// costs:          every partial sum is written and read once more; tiles wait for their slowest slice
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/slices.cuh"
#include "tilewright/thread_tile.cuh"

struct Stage {
  KMajorTile<BM> As;
  KMajorTile<BN> Bs;
};

struct Shared {
  Stage stages[STAGES];
  unsigned arrived;  // how many slices had come before this one
};

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS) k15_split_k(const __grid_constant__ GemmArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());
  Stage* stages = shared.stages;

  const ThreadPlace place(threadIdx.x);
  const int index = blockIdx.x / SPLIT_K, slice = blockIdx.x % SPLIT_K;
  const OutputTile tile(args, index);

  const SliceSteps<SPLIT_K> steps(args, slice);

  const auto sources = OperandSources(args, tile, steps.first * BK);
  TileCopies<KMajorTile<BM>, !TRANSPOSED_A, WORD_A, NUM_THREADS> copies_a(sources.a, args.lda, args.m - tile.row,
                                                                          threadIdx.x);
  TileCopies<KMajorTile<BN>, TRANSPOSED_B, WORD_B, NUM_THREADS> copies_b(sources.b, args.ldb, args.n - tile.col,
                                                                         threadIdx.x);

  // The next step's tiles into the next stage. Past the last one the group is empty, so that waits count the same
  // everywhere.
  int fetched = 0, free_stage = 0;
  auto fetch = [&] {
    if (fetched < steps.count) {
      copies_a.copy(stages[free_stage].As, args.k - (steps.first + fetched) * BK);
      copies_b.copy(stages[free_stage].Bs, args.k - (steps.first + fetched) * BK);
    }
    cp_async_commit();
    ++fetched;
    free_stage = free_stage + 1 < STAGES ? free_stage + 1 : 0;
  };

  ThreadSums sums = {};
  ThreadFragments fragments[2];

  wait_for_previous_kernel();
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) fetch();
  cp_async_wait<STAGES - 2>();
  __syncthreads();  // the first stage is whole before anyone reads it
  if (steps.count > 0) load_fragments(fragments[0], stages[0].As, stages[0].Bs, place, 0);

  int current = 0;
  for (int step = 0; step < steps.count; ++step) {
    const Stage& stage = stages[current];
    // The last step has itself for a next one.
    if (step + 1 < steps.count) current = current + 1 < STAGES ? current + 1 : 0;
    fetch();

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      if (k + 1 < BK) {
        load_fragments(fragments[(k + 1) % 2], stage.As, stage.Bs, place, k + 1);
      } else {
        cp_async_wait<STAGES - 2>();
        __syncthreads();  // the next stage is whole, and everyone has read this one before it is filled again
        load_fragments(fragments[0], stages[current].As, stages[current].Bs, place, 0);
      }
      multiply(sums, fragments[k % 2]);
    }
  }
  let_next_kernel_start();
  if (add_slices<SPLIT_K, SLICE_GROUP, NUM_THREADS, TM * TN>(args, index, slice, &sums[0][0], shared.arrived)) {
    write_sums(args, tile, place, sums);
  }
}
