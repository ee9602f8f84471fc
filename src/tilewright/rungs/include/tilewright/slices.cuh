// One result from several CTAs, each of which has summed a part of k. The CTA that comes last adds the parts in their
// order, whoever it is, so bits never depend on timing. No CTA waits for another. Owns where partial sums lie in the
// workspace, and the flags, which it leaves zero.
#pragma once

#include "tilewright/grid.cuh"
#include "tilewright/memory.cuh"

namespace tilewright {

// Slots in the workspace, each for COUNT sums of each of THREADS threads. One by one, since a store of four would ask
// for neighbouring registers, and so take the choice of banks from all FMAs before it.
template <int THREADS, int COUNT>
class PartialSums {
 public:
  __device__ __forceinline__ PartialSums(const GemmArgs& args, int thread)
      : first_(static_cast<Scalar::accumulate*>(args.workspace) + thread) {}

  __device__ __forceinline__ void store(long long slot, const Scalar::accumulate* sums) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) at(slot, i) = sums[i];
  }

  // Sum i of a slot.
  __device__ __forceinline__ Scalar::accumulate& at(long long slot, int i) const {
    return first_[(slot * COUNT + i) * THREADS];
  }

 private:
  Scalar::accumulate* first_;
};

// Counts a part that was left in the workspace. True in the CTA that brings the last of `parts`, which then sees all.
// `arrived` is a word of shared memory; `sync` joins the threads that have sums, thread 0 among them, and all come.
template <typename Sync>
__device__ __forceinline__ bool came_last(unsigned* flag, int parts, unsigned& arrived, Sync sync) {
  sync();  // the sums are in the workspace before one thread says so
  if (threadIdx.x == 0) {
    arrived = atomic_add(flag, 1);
    if (arrived == parts - 1u) *flag = 0;
  }
  sync();  // every thread knows how many came before, and sees what they have left
  return arrived == parts - 1u;
}

// Slice `slice` of SLICES of tile `tile`, held by the CTA's first THREADS threads. True in the CTA that came last,
// where they then have the totals. The whole CTA must come.
template <int SLICES, int THREADS, int COUNT>
__device__ __forceinline__ bool add_slices(const GemmArgs& args, int tile, int slice, Scalar::accumulate* sums,
                                           unsigned& arrived) {
  const bool has_sums = THREADS == NUM_THREADS || threadIdx.x < THREADS;
  const PartialSums<THREADS, COUNT> partial(args, threadIdx.x);
  const long long first = 1ll * tile * SLICES;
  if (has_sums) partial.store(first + slice, sums);
  if (!came_last(&args.flags[tile], SLICES, arrived, [] { __syncthreads(); })) return false;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    if (!has_sums) break;
    sums[i] = partial.at(first, i);
#pragma unroll(SLICES < 16 ? SLICES : 16)
    for (int s = 1; s < SLICES; ++s) sums[i] = Scalar::add(sums[i], partial.at(first + s, i));
  }
  return true;
}

}  // namespace tilewright
