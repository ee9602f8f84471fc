// A ring of stages between warps that copy and warps that multiply. The CTA's first MATH_THREADS threads multiply, the
// next COPY_THREADS copy. Stages are filled two at a time: their copies share the computing of their addresses. Expects
// STAGES, an even count of at least four, and what thread_tile.cuh does. Owns who waits for what on the way of an
// element from global memory to the sums; which tiles a CTA computes, and where sums go, is the kernel's.
#pragma once

#include "tilewright/ring.cuh"
#include "tilewright/thread_tile.cuh"
#include "tilewright/warp.cuh"

namespace tilewright {

struct Stage {
  KMajorTile<BM> As;
  KMajorTile<BN> Bs;
};

struct StageRing {
  Stage stages[STAGES];
  Mbarrier full[STAGES];   // an arrival of each thread that copies, once its copies have landed
  Mbarrier empty[STAGES];  // an arrival of each warp that multiplies: it has read the stage

  // By one thread, before anyone waits.
  __device__ __forceinline__ void init() {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&full[i], COPY_THREADS);
      mbarrier_init(&empty[i], MATH_THREADS / 32);
    }
  }
};

constexpr int STEP = 2 * BK;  // along k, two stages

// How many steps k takes: beyond it are zeros.
__device__ __forceinline__ int steps_of(const GemmArgs& args) { return ceil_div(args.k, STEP); }

// A copying thread's part of steps [first, last) of a tile. `slot` goes on from tile to tile.
__device__ __forceinline__ void copy_steps(const GemmArgs& args, const OutputTile& tile, int first, int last,
                                           StageRing& ring, Slot& slot) {
  const int thread = threadIdx.x - MATH_THREADS;
  const OperandSources sources(args, tile, first * STEP);
  TileCopies<KMajorTile<BM>, !TRANSPOSED_A, WORD_A, COPY_THREADS> copies_a(sources.a, args.lda, args.m - tile.row,
                                                                           thread);
  TileCopies<KMajorTile<BN>, TRANSPOSED_B, WORD_B, COPY_THREADS> copies_b(sources.b, args.ldb, args.n - tile.col,
                                                                          thread);
  for (int step = first; step < last; ++step, slot.advance(2)) {
    Stage &stage = ring.stages[slot.stage], &then = ring.stages[slot.stage + 1];
    mbarrier_wait(&ring.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
    mbarrier_wait(&ring.empty[slot.stage + 1], slot.parity ^ 1);
    copies_a.copy({&stage.As, &then.As}, args.k - step * STEP);
    copies_b.copy({&stage.Bs, &then.Bs}, args.k - step * STEP);
    cp_async_mbarrier_arrive_noinc(&ring.full[slot.stage]);
    cp_async_mbarrier_arrive_noinc(&ring.full[slot.stage + 1]);
  }
}

// After all tiles: one more phase, of nothing, so that the last step waits for a next one as all others do.
__device__ __forceinline__ void end_copies(StageRing& ring, const Slot& slot) {
  mbarrier_wait(&ring.empty[slot.stage], slot.parity ^ 1);
  mbarrier_arrive(&ring.full[slot.stage]);
}

// The first fragments of the first stage, before `multiply_stages`.
__device__ __forceinline__ void load_first(ThreadFragments (&fragments)[2], const StageRing& ring,
                                           const ThreadPlace& place) {
  load_fragments(fragments[0], ring.stages[0].As, ring.stages[0].Bs, place, 0);
}

// The sums of `count` stages. Comes with the first fragments of the first stage and leaves with those of the next one,
// if there is one.
__device__ __forceinline__ void multiply_stages(ThreadSums& sums, ThreadFragments (&fragments)[2], StageRing& ring,
                                                Slot& slot, const ThreadPlace& place, int count, bool has_next) {
  for (int i = 0; i < count; ++i) {
    const int current = slot.stage;
    const Stage& stage = ring.stages[current];
    slot.advance();
    const Stage& next = ring.stages[has_next || i + 1 < count ? slot.stage : current];

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      if (k + 1 < BK) {
        load_fragments(fragments[(k + 1) % 2], stage.As, stage.Bs, place, k + 1);
      } else {
        mbarrier_wait(&ring.full[slot.stage], slot.parity);
        __syncwarp();  // all lanes have read the stage before one says so for the warp
        if (threadIdx.x % 32 == 0) mbarrier_arrive(&ring.empty[current]);
        load_fragments(fragments[0], next.As, next.Bs, place, 0);
      }
      multiply(sums, fragments[k % 2]);
    }
  }
}

}  // namespace tilewright
