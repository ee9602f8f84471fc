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

}  // namespace tilewright
