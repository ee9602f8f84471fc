// k14_warp_specialised: four warps copy, the others multiply, and a ring of stages with two barriers each between.
// builds on:      k13_multistage
// what changes:   copies are other warps' business; each warp that multiplies waits for a stage, and gives it back, on
//                 its own; registers go where the sums are
// should help:    the FMA warps issue next to nothing but FMAs, and no barrier stops them all at once
// costs:          four warps that compute nothing; one CTA an SM
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/registers.cuh"
#include "tilewright/ring.cuh"
#include "tilewright/thread_tile.cuh"
#include "tilewright/warp.cuh"

struct Stage {
  KMajorTile<BM> As;
  KMajorTile<BN> Bs;
};

struct Shared {
  Stage stages[STAGES];
  Mbarrier full[STAGES];   // an arrival of each thread that copies, once its copies have landed
  Mbarrier empty[STAGES];  // an arrival of each warp that multiplies: it has read the stage
};

__device__ __forceinline__ void copy_tiles(const GemmArgs& args, const OutputTile& tile, Shared& shared, int steps) {
  const int thread = threadIdx.x - MATH_THREADS;
  const auto sources = OperandSources(args, tile);
  TileCopies<BM, !TRANSPOSED_A, WORD_A, COPY_THREADS> copies_a(sources.a, args.lda, args.m - tile.row, thread);
  TileCopies<BN, TRANSPOSED_B, WORD_B, COPY_THREADS> copies_b(sources.b, args.ldb, args.n - tile.col, thread);

  // Two stages at a time, whose copies share the computing of their addresses.
  Slot slot;
  for (int step = 0; step < steps; step += 2, slot.advance(2)) {
    Stage &stage = shared.stages[slot.stage], &then = shared.stages[slot.stage + 1];
    mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
    mbarrier_wait(&shared.empty[slot.stage + 1], slot.parity ^ 1);
    copies_a.copy({&stage.As, &then.As}, args.k - step * BK);
    copies_b.copy({&stage.Bs, &then.Bs}, args.k - step * BK);
    cp_async_mbarrier_arrive_noinc(&shared.full[slot.stage]);
    cp_async_mbarrier_arrive_noinc(&shared.full[slot.stage + 1]);
  }
  // One more phase, of nothing, so that the last step waits for a next one as all others do.
  mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);
  mbarrier_arrive(&shared.full[slot.stage]);
}

__device__ __forceinline__ void multiply_tiles(ThreadSums& sums, Shared& shared, const ThreadPlace& place, int steps) {
  ThreadFragments fragments[2];
  Slot slot;
  mbarrier_wait(&shared.full[0], 0);
  if (steps > 0) load_fragments(fragments[0], shared.stages[0].As, shared.stages[0].Bs, place, 0);

  for (int step = 0; step < steps; ++step) {
    const int current = slot.stage;
    const Stage& stage = shared.stages[current];
    slot.advance();
    const Stage& next = shared.stages[step + 1 < steps ? slot.stage : current];

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      if (k + 1 < BK) {
        load_fragments(fragments[(k + 1) % 2], stage.As, stage.Bs, place, k + 1);
      } else {
        mbarrier_wait(&shared.full[slot.stage], slot.parity);
        __syncwarp();  // all lanes have read the stage before one says so for the warp
        if (threadIdx.x % 32 == 0) mbarrier_arrive(&shared.empty[current]);
        load_fragments(fragments[0], next.As, next.Bs, place, 0);
      }
      multiply(sums, fragments[k % 2]);
    }
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1)
    k14_warp_specialised(const __grid_constant__ GemmArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&shared.full[i], COPY_THREADS);
      mbarrier_init(&shared.empty[i], MATH_THREADS / 32);
    }
  }
  __syncthreads();  // the barriers are there before anyone waits for them

  const OutputTile tile(args, blockIdx.x);
  const int steps = 2 * (args.k / (2 * BK) + (args.k % (2 * BK) != 0));  // beyond k are zeros
  if (threadIdx.x >= MATH_THREADS) {
    release_registers<COPY_REGISTERS>();
    copy_tiles(args, tile, shared, steps);
    return;
  }
  acquire_registers<MATH_REGISTERS>();
  const ThreadPlace place(threadIdx.x);
  ThreadSums sums = {};
  multiply_tiles(sums, shared, place, steps);
  write_sums(args, tile, place, sums);
}
