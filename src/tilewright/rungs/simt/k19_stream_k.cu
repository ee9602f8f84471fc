// k19_stream_k: as many CTAs as there are SMs, and the steps of the last wave's tiles dealt out evenly to all of them.
// builds on:      k14_warp_specialised
// what changes:   a CTA computes whole tiles and, before them, its share of the steps of the tiles that fill no wave;
//                 a tile in parts is added up by the CTA that brings its last part
// should help:    no SM idles in the last wave; copies for the next tile run while results of this one are written
// costs:          partial sums through global memory, two CTA tiles a CTA at most; a workspace
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/barriers.cuh"
#include "tilewright/dependent.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/slices.cuh"
#include "tilewright/stage_ring.cuh"
#include "tilewright/stream_k.cuh"

constexpr int GROUP = 8, MOST_AT_ONCE = 24;  // parts of a tile that one CTA adds up: more are parted in groups

struct Shared {
  StageRing ring;
  StreamPlan plan;
  unsigned arrived;  // how many parts of a tile had come before this CTA's
};

// This CTA's part of a tile to the workspace, and, if it is the last part to come, the sums of all parts to D. Many
// parts are added in groups, and then the groups: one CTA reads no faster than its SM does.
__device__ __forceinline__ void add_parts(const GemmArgs& args, Shared& shared, int tile, const ThreadPlace& place,
                                          const ThreadSums& sums) {
  const PartialSums<MATH_THREADS, TM * TN> partial(args, threadIdx.x);
  const StreamPlan& plan = shared.plan;
  const int index = tile - plan.whole, first = plan.first_cta(index), parts = plan.last_cta(index) - first + 1;
  const int mine = blockIdx.x - first, stride = parts > MOST_AT_ONCE ? GROUP : 1;
  const auto slot = [&](int part) { return plan.slot(index, first + part); };
  const auto sync = [] { barrier_sync(1, MATH_THREADS); };

  partial.store(slot(mine), &sums[0][0]);
  if (stride > 1) {
    const int leader = mine / stride * stride, members = min(stride, parts - leader);
    unsigned* flag = &args.flags[2 * gridDim.x + slot(leader)];
    if (!came_last(flag, members, shared.arrived, sync)) return;
    partial.add_up(
        members, [&](int part) { return slot(leader + part); },
        [&](int i, const Scalar::accumulate* some) { partial.store_some(slot(leader), i, some); });
  }
  const int groups = ceil_div(parts, stride);
  if (!came_last(&args.flags[index], groups, shared.arrived, sync)) return;
  const OutputTile output(args, tile);
  const GemmArgs entry = entry_of(args, output.entry);
  partial.add_up(
      groups, [&](int part) { return slot(part * stride); },
      [&](int i, const Scalar::accumulate* some) {
#pragma unroll
        for (int x = 0; x < partial.AT_ONCE; x += 4) {
          write_four(entry, output, place, (i + x) / TN, (i + x) % TN, some + x);
        }
      });
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1) k19_stream_k(const __grid_constant__ GemmArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  if (threadIdx.x == 0) {
    shared.plan.make(args, STEP);
    shared.ring.init();
  }
  __syncthreads();  // plan and barriers are there before anyone uses them
  wait_for_previous_kernel();

  StageRing& ring = shared.ring;
  StreamK work(shared.plan);
  Slot slot;
  if (threadIdx.x >= MATH_THREADS) {
    release_registers<COPY_REGISTERS>();
    while (work.has_next()) {
      work.advance();
      copy_steps(args, OutputTile(args, work.tile), work.first, work.last, ring, slot);
    }
    end_copies(ring, slot);
    return;
  }
  acquire_registers<MATH_REGISTERS>();
  const ThreadPlace place(threadIdx.x);
  ThreadFragments fragments[2];
  mbarrier_wait(&ring.full[0], 0);
  if (work.has_next() && args.k > 0) load_first(fragments, ring, place);

  while (work.has_next()) {
    work.advance();
    ThreadSums sums = {};
    multiply_stages(sums, fragments, ring, slot, place, 2 * (work.last - work.first), work.has_next());
    if (!work.has_next()) let_next_kernel_start();
    if (work.is_whole_tile()) {
      write_sums(args, OutputTile(args, work.tile), place, sums);
    } else {
      add_parts(args, shared, work.tile, place, sums);
    }
  }
}
