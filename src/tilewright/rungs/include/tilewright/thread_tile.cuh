// What one thread computes of its warp's tile: TM rows by TN columns in chunks of four by four. Neighbouring lanes hold
// neighbouring chunks, so a chunk of a warp is read from shared memory, and stored to D, without gaps. Expects BM, BN,
// BK, WM, WN, TM, TN, LANE_ROWS, LANE_COLS and what the problem chooses. Owns which lane holds what.
#pragma once

#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"
#include "tilewright/k_major.cuh"
#include "tilewright/output_tile.cuh"
#include "tilewright/warp.cuh"

namespace tilewright {

constexpr int ROW_STEP = 4 * LANE_ROWS, COL_STEP = 4 * LANE_COLS;  // from one chunk of a thread to its next

// Both operands for one k.
struct ThreadFragments {
  Scalar::accumulate a[TM], b[TN];
};

using ThreadSums = Scalar::accumulate[TM][TN];

// Where a thread's first result lies in the CTA tile.
struct ThreadPlace {
  int row, col;

  __device__ __forceinline__ explicit ThreadPlace(int thread) {
    const int warp = thread / 32, lane = thread % 32;
    row = warp / (BN / WN) * WM + lane / LANE_COLS * 4;
    col = warp % (BN / WN) * WN + lane % LANE_COLS * 4;
  }
};

// Where a CTA's part of the operands begins, from `k` on.
struct OperandSources {
  const Scalar::storage *a, *b;

  __device__ __forceinline__ OperandSources(const GemmArgs& args, const OutputTile& tile, int k = 0) {
    a = args.a + tile.entry * args.batch_stride_a + tile.row * (TRANSPOSED_A ? 1 : args.lda) +
        k * (TRANSPOSED_A ? args.lda : 1);
    b = args.b + tile.entry * args.batch_stride_b + tile.col * (TRANSPOSED_B ? args.ldb : 1) +
        k * (TRANSPOSED_B ? 1 : args.ldb);
  }
};

__device__ __forceinline__ void load_fragments(ThreadFragments& to, const KMajorTile<BM>& As, const KMajorTile<BN>& Bs,
                                               const ThreadPlace& place, int k) {
#pragma unroll
  for (int i = 0; i < TM; i += 4) load_fragment<4>(to.a + i, &As.elements[k][place.row + i / 4 * ROW_STEP]);
#pragma unroll
  for (int j = 0; j < TN; j += 4) load_fragment<4>(to.b + j, &Bs.elements[k][place.col + j / 4 * COL_STEP]);
}

// sums[i][j] += a[i] * b[j], the longer side as the outer loop, the shorter one to and fro as in `outer_product`.
__device__ __forceinline__ void multiply(ThreadSums& sums, const ThreadFragments& of) {
  if constexpr (TM > TN) {
    outer_product(sums, of.a, of.b);
  } else {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
#pragma unroll
      for (int step = 0; step < TM; ++step) {
        const int i = j % 2 == 0 ? step : TM - 1 - step;
        sums[i][j] = Scalar::fma(of.a[i], of.b[j], sums[i][j]);
      }
    }
  }
}

// Whether results that are stored one by one change lanes first, so that a store's lanes have neighbouring columns. Not
// for small thread tiles: they have fewer to store, and launch bounds that leave no registers for it.
constexpr bool EXCHANGED = OUTPUT_WORD == 1 && LANE_COLS >= 4 && TM * TN >= 128;

// Swaps x of lanes whose bit is set for y of lanes whose bit isn't.
__device__ __forceinline__ void swap_lanes(Scalar::accumulate& x, Scalar::accumulate& y, int bit) {
  const bool is_set = threadIdx.x & bit;
  const Scalar::accumulate got = __shfl_xor_sync(FULL_WARP, is_set ? x : y, bit);
  (is_set ? x : y) = got;
}

// Four of the thread's results to D, the first of which is (i, j) of its own. `entry` is `tile`'s of the batch. All
// lanes of a warp come together.
__device__ __forceinline__ void write_four(const GemmArgs& entry, const OutputTile& tile, const ThreadPlace& place,
                                           int i, int j, const Scalar::accumulate* sums) {
  const int row = tile.row + place.row + i / 4 * ROW_STEP + i % 4, col = tile.col + place.col + j / 4 * COL_STEP;
  if constexpr (EXCHANGED) {
    // Four results by four groups of the row's lanes, transposed: then a group has a result of each other's.
    constexpr int HIGH = LANE_COLS / 2, LOW = LANE_COLS / 4;
    const int lane = threadIdx.x % LANE_COLS, group = lane / LOW;
    Scalar::accumulate mine[4] = {sums[0], sums[1], sums[2], sums[3]};
    swap_lanes(mine[0], mine[2], HIGH);
    swap_lanes(mine[1], mine[3], HIGH);
    swap_lanes(mine[0], mine[1], LOW);
    swap_lanes(mine[2], mine[3], LOW);
    const int first = col - 4 * lane + lane % LOW * 4 + group;
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if (GUARDED && (row >= entry.m || first + x * LANE_COLS >= entry.n)) continue;
      write_result<BETA_MODE>(entry, row, first + x * LANE_COLS, mine[x]);
    }
    return;
  }
  if (GUARDED && row >= entry.m) return;
  if (OUTPUT_WORD == 4 && (!GUARDED || col + 4 <= entry.n)) {
    write_results4<BETA_MODE>(entry, row, col, sums);
  } else {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      if (GUARDED && col + x >= entry.n) continue;
      write_result<BETA_MODE>(entry, row, col + x, sums[x]);
    }
  }
}

// All of them.
__device__ __forceinline__ void write_sums(const GemmArgs& args, const OutputTile& tile, const ThreadPlace& place,
                                           const ThreadSums& sums) {
  const GemmArgs entry = entry_of(args, tile.entry);
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) write_four(entry, tile, place, i, j, &sums[i][j]);
  }
}

}  // namespace tilewright
