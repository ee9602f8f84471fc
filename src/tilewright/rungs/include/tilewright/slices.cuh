// One result from several CTAs, each of which has summed a slice of k. The CTA that comes last adds the slices in their
// order, whoever it is, so bits never depend on timing. No CTA waits for another. Owns where partial sums lie in the
// workspace, and the flags, which it leaves zero.
// Expects NUM_THREADS.
#pragma once

#include "tilewright/grid.cuh"
#include "tilewright/memory.cuh"

namespace tilewright {

// COUNT sums, a multiple of four, of each of the first THREADS threads: of slice `slice` of tile `tile`. True in the
// CTA that came last, where they then have the totals. `arrived` is a word of shared memory. The whole CTA must come.
template <int SLICES, int THREADS, int COUNT>
__device__ __forceinline__ bool add_slices(const GemmArgs& args, int tile, int slice, Scalar::accumulate* sums,
                                           unsigned& arrived) {
  static_assert(COUNT % 4 == 0, "sums are stored in fours");
  using Four = Vec4<Scalar::accumulate>;
  auto* first = static_cast<Scalar::accumulate*>(args.workspace) + 1ll * tile * (SLICES * COUNT * THREADS);
  // Neighbouring threads' fours side by side.
  const bool has_sums = THREADS == NUM_THREADS || threadIdx.x < THREADS;
  auto place = [&](int of_slice, int i) {
    return first + of_slice * (COUNT * THREADS) + i * THREADS + threadIdx.x * 4;
  };

#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    if (!has_sums) break;
    Four four;
#pragma unroll
    for (int x = 0; x < 4; ++x) four[x] = sums[i + x];
    store4(place(slice, i), four);
  }
  __syncthreads();  // the CTA's sums are in the workspace before one thread says so
  if (threadIdx.x == 0) arrived = atomic_add(&args.flags[tile], 1);
  __syncthreads();  // every thread knows how many came before, and sees what they have left
  if (arrived != SLICES - 1) return false;
  if (threadIdx.x == 0) args.flags[tile] = 0;

#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    if (!has_sums) break;
    Four total = load4(place(0, i));
#pragma unroll
    for (int s = 1; s < SLICES; ++s) {
      const Four more = load4(place(s, i));
#pragma unroll
      for (int x = 0; x < 4; ++x) total[x] = Scalar::add(total[x], more[x]);
    }
#pragma unroll
    for (int x = 0; x < 4; ++x) sums[i + x] = total[x];
  }
  return true;
}

}  // namespace tilewright
