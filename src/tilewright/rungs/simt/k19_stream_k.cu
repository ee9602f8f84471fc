// k19_stream_k: as many CTAs as there are SMs, and the steps of the last wave's tiles dealt out evenly to all of them.
// builds on:      k14_warp_specialised
// what changes:   a CTA computes whole tiles and, before them, its share of the steps of the tiles that fill no wave;
//                 a tile in parts is added up by the CTA that brings its last part
// should help:    no SM idles in the last wave; copies for the next tile run while results of this one are written
// costs:          partial sums through global memory, two CTA tiles a CTA at most; a workspace
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/barriers.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/ring.cuh"
#include "tilewright/slices.cuh"
#include "tilewright/stream_k.cuh"
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
  StreamPlan plan;
  unsigned arrived;  // how many parts of a tile had come before this CTA's
};

constexpr int STEP = 2 * BK;  // along k, two stages

__device__ __forceinline__ void copy_tiles(const GemmArgs& args, Shared& shared) {
  const int thread = threadIdx.x - MATH_THREADS;
  Slot slot;  // goes on from tile to tile, as the ring does
  for (StreamK work(shared.plan); work.has_next();) {
    work.advance();
    const OutputTile tile(args, work.tile);
    const OperandSources sources(args, tile, work.first * STEP);
    TileCopies<BM, !TRANSPOSED_A, WORD_A, COPY_THREADS> copies_a(sources.a, args.lda, args.m - tile.row, thread);
    TileCopies<BN, TRANSPOSED_B, WORD_B, COPY_THREADS> copies_b(sources.b, args.ldb, args.n - tile.col, thread);

    for (int step = work.first; step < work.last; ++step, slot.advance(2)) {
      Stage &stage = shared.stages[slot.stage], &then = shared.stages[slot.stage + 1];
      mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
      mbarrier_wait(&shared.empty[slot.stage + 1], slot.parity ^ 1);
      copies_a.copy({&stage.As, &then.As}, args.k - step * STEP);
      copies_b.copy({&stage.Bs, &then.Bs}, args.k - step * STEP);
      cp_async_mbarrier_arrive_noinc(&shared.full[slot.stage]);
      cp_async_mbarrier_arrive_noinc(&shared.full[slot.stage + 1]);
    }
  }
  // One more phase, of nothing, so that the last step waits for a next one as all others do.
  mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);
  mbarrier_arrive(&shared.full[slot.stage]);
}

// The sums of `count` stages. Comes with the first fragments of the first stage and leaves with those of the next one,
// if there is one.
__device__ __forceinline__ void multiply_tiles(ThreadSums& sums, ThreadFragments (&fragments)[2], Shared& shared,
                                               Slot& slot, const ThreadPlace& place, int count, bool has_next) {
  for (int i = 0; i < count; ++i) {
    const int current = slot.stage;
    const Stage& stage = shared.stages[current];
    slot.advance();
    const Stage& next = shared.stages[has_next || i + 1 < count ? slot.stage : current];

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

// This CTA's part of a tile to the workspace, and, if it is the last part to come, the sums of all parts to D.
__device__ __forceinline__ void add_parts(const GemmArgs& args, Shared& shared, int tile, const ThreadPlace& place,
                                          const ThreadSums& sums) {
  const PartialSums<MATH_THREADS, TM * TN> partial(args, threadIdx.x);
  const StreamPlan& plan = shared.plan;
  const int index = tile - plan.whole, first = plan.first_cta(index), last = plan.last_cta(index);
  partial.store(plan.slot(index, blockIdx.x), &sums[0][0]);
  if (!came_last(&args.flags[index], last - first + 1, shared.arrived, [] { barrier_sync(1, MATH_THREADS); })) return;

  const OutputTile output(args, tile);
  const GemmArgs entry = entry_of(args, output.entry);
  constexpr int at_once = TM * TN < 32 ? TM * TN : 32;  // loads under way
#pragma unroll 1
  for (int i = 0; i < TM * TN; i += at_once) {
    Scalar::accumulate total[at_once];
#pragma unroll
    for (int x = 0; x < at_once; ++x) total[x] = partial.at(plan.slot(index, first), i + x);
    for (int cta = first + 1; cta <= last; ++cta) {
      const int slot = plan.slot(index, cta);
#pragma unroll
      for (int x = 0; x < at_once; ++x) total[x] = Scalar::add(total[x], partial.at(slot, i + x));
    }
#pragma unroll
    for (int x = 0; x < at_once; x += 4) write_four(entry, output, place, (i + x) / TN, (i + x) % TN, total + x);
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1) k19_stream_k(const __grid_constant__ GemmArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  if (threadIdx.x == 0) {
    shared.plan.make(args, STEP);
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&shared.full[i], COPY_THREADS);
      mbarrier_init(&shared.empty[i], MATH_THREADS / 32);
    }
  }
  __syncthreads();  // plan and barriers are there before anyone uses them

  if (threadIdx.x >= MATH_THREADS) {
    release_registers<COPY_REGISTERS>();
    copy_tiles(args, shared);
    return;
  }
  acquire_registers<MATH_REGISTERS>();
  const ThreadPlace place(threadIdx.x);
  ThreadFragments fragments[2];
  Slot slot;
  StreamK work(shared.plan);
  mbarrier_wait(&shared.full[0], 0);
  if (work.has_next() && args.k > 0) load_fragments(fragments[0], shared.stages[0].As, shared.stages[0].Bs, place, 0);

  while (work.has_next()) {
    work.advance();
    ThreadSums sums = {};
    multiply_tiles(sums, fragments, shared, slot, place, 2 * (work.last - work.first), work.has_next());
    if (work.is_whole_tile()) {
      write_sums(args, OutputTile(args, work.tile), place, sums);
    } else {
      add_parts(args, shared, work.tile, place, sums);
    }
  }
}
