// One result from several CTAs, each of which has summed a part of k. The CTA that comes last adds the parts in their
// order, whoever it is, so bits never depend on timing. No CTA waits for another. Owns where partial sums lie in the
// workspace, and the flags, which it leaves zero.
#pragma once

#include "tilewright/ceil_div.cuh"
#include "tilewright/grid.cuh"
#include "tilewright/memory.cuh"

namespace tilewright {

// The steps along k of slice `slice` of SLICES: all slices have the same count but the last ones, which may have fewer
// or none. Expects BK.
template <int SLICES>
struct SliceSteps {
  int first, count;

  __device__ __forceinline__ SliceSteps(const GemmArgs& args, int slice) {
    const int all = ceil_div(args.k, BK), most = ceil_div(all, SLICES);
    first = min(slice * most, all);
    count = min(most, all - first);
  }
};

// Slots in the workspace, each for COUNT sums of each of THREADS threads. One by one, since a store of four would ask
// for neighbouring registers, and so take the choice of banks from all FMAs before it.
template <int THREADS, int COUNT>
class PartialSums {
 public:
  static constexpr int AT_ONCE = COUNT < 32 ? COUNT : 32;  // loads under way

  __device__ __forceinline__ PartialSums(const GemmArgs& args, int thread)
      : first_(static_cast<Scalar::accumulate*>(args.workspace) + thread) {}

  __device__ __forceinline__ void store(long long slot, const Scalar::accumulate* sums) const {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) at(slot, i) = sums[i];
  }

  // Sums i to i + AT_ONCE - 1 of a slot.
  __device__ __forceinline__ void store_some(long long slot, int i, const Scalar::accumulate* some) const {
#pragma unroll
    for (int x = 0; x < AT_ONCE; ++x) at(slot, i + x) = some[x];
  }

  // Adds up the slots slot_of(0) to slot_of(parts - 1), in that order, and gives the totals to sink(i, some) as they
  // come, AT_ONCE from the i-th on.
  template <typename SlotOf, typename Sink>
  __device__ __forceinline__ void add_up(int parts, SlotOf slot_of, Sink sink) const {
#pragma unroll 1
    for (int i = 0; i < COUNT; i += AT_ONCE) {
      Scalar::accumulate total[AT_ONCE];
      const int first = slot_of(0);
#pragma unroll
      for (int x = 0; x < AT_ONCE; ++x) total[x] = at(first, i + x);
      for (int part = 1; part < parts; ++part) {
        const int slot = slot_of(part);
#pragma unroll
        for (int x = 0; x < AT_ONCE; ++x) total[x] = Scalar::add(total[x], at(slot, i + x));
      }
      sink(i, total);
    }
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

// The sums of PARTS slots, the first of which is `slot` and each `stride` further, added in that order.
template <int PARTS, int THREADS, int COUNT>
__device__ __forceinline__ void load_total(Scalar::accumulate* sums, const PartialSums<THREADS, COUNT>& partial,
                                           long long slot, int stride) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    sums[i] = partial.at(slot, i);
#pragma unroll(PARTS < 16 ? PARTS : 16)
    for (int part = 1; part < PARTS; ++part) sums[i] = Scalar::add(sums[i], partial.at(slot + part * stride, i));
  }
}

// Slice `slice` of SLICES of tile `tile`, held by the CTA's first THREADS threads. True in the CTA that came last,
// where they then have the totals. The whole CTA must come. One CTA reads no faster than its SM does, so many slices
// are added in groups of GROUP, and then the groups: the last of each group leaves their sum in the group's first slot.
template <int SLICES, int GROUP, int THREADS, int COUNT>
__device__ __forceinline__ bool add_slices(const GemmArgs& args, int tile, int slice, Scalar::accumulate* sums,
                                           unsigned& arrived) {
  if (SLICES == 1) return true;
  constexpr int members = SLICES < GROUP ? SLICES : GROUP, groups = SLICES / members;
  static_assert(SLICES % members == 0, "all groups are whole");
  const bool has_sums = THREADS == NUM_THREADS || threadIdx.x < THREADS;
  const PartialSums<THREADS, COUNT> partial(args, threadIdx.x);
  const auto sync = [] { __syncthreads(); };
  const int group = slice / members;
  const long long first = 1ll * tile * SLICES, first_of_group = first + group * members;
  unsigned* flags = args.flags + 1ll * tile * (groups > 1 ? groups + 1 : 1);  // one a group, and one for the groups

  if (has_sums) partial.store(first + slice, sums);
  if (!came_last(&flags[group], members, arrived, sync)) return false;
  if (has_sums) load_total<members>(sums, partial, first_of_group, 1);
  if (groups == 1) return true;

  if (has_sums) partial.store(first_of_group, sums);
  if (!came_last(&flags[groups], groups, arrived, sync)) return false;
  if (has_sums) load_total<groups>(sums, partial, first, members);
  return true;
}

}  // namespace tilewright
