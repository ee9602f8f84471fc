// k13_multistage: both operands copied asynchronously, several tiles ahead; a copy of single elements transposes.
// builds on:      k12_tall_thread_tile
// what changes:   no operand passes through registers; STAGES tiles in a ring; fragments are loaded one k ahead; a
//                 thread's results are chunks of four by four over its whole warp tile
// should help:    no register holds what is on its way, and neither global nor shared latency stands before an FMA
// costs:          an operand that is stored along k takes four times the copies; STAGES times the shared memory
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/thread_tile.cuh"

struct Stage {
  KMajorTile<BM> As;
  KMajorTile<BN> Bs;
};

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k13_multistage(const __grid_constant__ GemmArgs args) {
  Stage* stages = reinterpret_cast<Stage*>(dynamic_smem());  // STAGES of them

  const ThreadPlace place(threadIdx.x);
  const OutputTile tile(args, blockIdx.x);
  const int steps = ceil_div(args.k, BK);

  const auto sources = OperandSources(args, tile);
  TileCopies<KMajorTile<BM>, !TRANSPOSED_A, WORD_A, NUM_THREADS> copies_a(sources.a, args.lda, args.m - tile.row,
                                                                          threadIdx.x);
  TileCopies<KMajorTile<BN>, TRANSPOSED_B, WORD_B, NUM_THREADS> copies_b(sources.b, args.ldb, args.n - tile.col,
                                                                         threadIdx.x);

  // The next step's tiles into the next stage. Past the last one the group is empty, so that waits count the same
  // everywhere.
  int fetched = 0, free_stage = 0;
  auto fetch = [&] {
    if (fetched < steps) {
      copies_a.copy(stages[free_stage].As, args.k - fetched * BK);
      copies_b.copy(stages[free_stage].Bs, args.k - fetched * BK);
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
  if (steps > 0) load_fragments(fragments[0], stages[0].As, stages[0].Bs, place, 0);

  int current = 0;
  for (int step = 0; step < steps; ++step) {
    const Stage& stage = stages[current];
    if (step + 1 < steps) current = current + 1 < STAGES ? current + 1 : 0;  // the last step has itself for a next one
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
  write_sums(args, tile, place, sums);
}
