// Results as tensor cores leave them in a warp: two neighbours a lane, at the edges of D too.
#pragma once

#include "tilewright/epilogue.cuh"

namespace tilewright {

// Two neighbouring results that may lie outside D; together where PAIRED says that D (and C) are aligned to both.
template <int MODE, bool PAIRED>
__device__ __forceinline__ void write_pair(const GemmArgs& args, int row, int col, const Scalar::accumulate* acc) {
  if (GUARDED && (row >= args.m || col >= args.n)) return;
  const bool both = !GUARDED || col + 1 < args.n;
  if (PAIRED && both) {
    write_results<MODE, 2>(args, row, col, acc);
  } else {
    write_result<MODE>(args, row, col, acc[0]);
    if (both) write_result<MODE>(args, row, col + 1, acc[1]);
  }
}

// Two neighbouring 16-bit results, rounded and side by side in one register; what lies outside D is anything.
template <int MODE, bool PAIRED, typename Out>
__device__ __forceinline__ unsigned packed_pair(const GemmArgs& args, int row, int col, const Scalar::accumulate* acc) {
  const bool is_first_inside = !GUARDED || (row < args.m && col < args.n);
  const bool are_both_inside = !GUARDED || (row < args.m && col + 1 < args.n);
  Vec2<Scalar::accumulate> two{};
  if (PAIRED && are_both_inside) {
    two = finished<MODE, 2>(args, row, col, acc);
  } else {
    if (is_first_inside) two[0] = finished<MODE, 1>(args, row, col, acc)[0];
    if (are_both_inside) two[1] = finished<MODE, 1>(args, row, col + 1, acc + 1)[0];
  }
  return Out::round_pair(two[0], two[1]);
}

}  // namespace tilewright
