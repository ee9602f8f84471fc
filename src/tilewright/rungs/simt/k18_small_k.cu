// k18_small_k: a warp holds its columns of B in registers, all of k, and streams rows of A past them to D.
// builds on:      k13_multistage
// what changes:   B is read once a warp and stays; each warp has a ring of its own with the next rows of A, so that no
//                 warp waits for another; results leave as they come, in streaming stores
// should help:    a k of a few dozen, where writing D takes as long as the FMAs: nothing is done in phases
// costs:          registers for BK by TN elements of B; beyond a k of BK they are loaded again for every few rows
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"
#include "tilewright/k_major.cuh"
#include "tilewright/output_tile.cuh"
#include "tilewright/warp.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;
using Rows = KMajorTile<TM>;  // of A
using Sums = Acc[TM][TN];

constexpr int WARPS = NUM_THREADS / 32, ROW_STEP = WARPS * TM;  // warps take rows in turn

// Column j of lane `lane`, within the warp's: WORD neighbours in each of TN / WORD places.
__device__ __forceinline__ int column(int lane, int j) { return (j / WORD * 32 + lane) * WORD + j % WORD; }

// `to[k][j]` from B at `b`, of which `depth` by `cols` elements are there; the others are zeros.
__device__ __forceinline__ void load_b(Acc (&to)[BK][TN], const Element* b, long long ldb, int depth, int cols) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < BK; ++k) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int col = column(lane, j);
      const bool inside = !GUARDED || (k < depth && col < cols);
      to[k][j] = inside ? Scalar::load(b + (TRANSPOSED_B ? col * ldb + k : k * ldb + col)) : Scalar::zero();
    }
  }
}

// The sums of a step along k. Where all of k is held there is one step, and its first products need no sum to be added
// to. All lanes read the same elements of A.
__device__ __forceinline__ void multiply(Sums& sums, const Rows& rows, const Acc (&b)[BK][TN]) {
  Acc a[2][TM];
  load_fragment<TM>(a[0], rows.elements[0]);
#pragma unroll
  for (int k = 0; k < BK; ++k) {
    if (k + 1 < BK) load_fragment<TM>(a[(k + 1) % 2], rows.elements[k + 1]);
    if (IS_HELD && k == 0) {
#pragma unroll
      for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) sums[i][j] = Scalar::mul(a[0][i], b[0][j]);
      }
    } else {
      outer_product(sums, a[k % 2], b[k]);
    }
  }
}

// TM rows of results, of which `rows` by `cols` are D's, to entry.d from column `col` on.
template <bool IS_SCALED>
__device__ __forceinline__ void write_rows(const GemmArgs& entry, int col, int rows, int cols, const Sums& sums) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    if (GUARDED && i >= rows) break;
#pragma unroll
    for (int j = 0; j < TN; j += WORD) {
      const int mine = column(lane, j);
      if (!GUARDED || mine + WORD <= cols) {
        const auto x = finished<BETA_MODE, WORD, IS_SCALED>(entry, i, col + mine, &sums[i][j]);
        Vec<Output::storage, WORD> out;
#pragma unroll
        for (int y = 0; y < WORD; ++y) out[y] = Output::round(x[y]);
        store_word_streaming(entry.d + i * entry.ldd + col + mine, out);
      } else {
#pragma unroll
        for (int y = 0; y < WORD; ++y) {
          if (mine + y < cols) write_result<BETA_MODE>(entry, i, col + mine + y, sums[i][j + y]);
        }
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS) k18_small_k(const __grid_constant__ GemmArgs args) {
  __shared__ Rows rings[WARPS][STAGES];
  const OutputTile tile(args, blockIdx.x);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = warp * TM, rows = min(args.m - tile.row, BM) - first, cols = args.n - tile.col;  // of the warp
  const long long row_a = TRANSPOSED_A ? 1 : args.lda, k_a = TRANSPOSED_A ? args.lda : 1;
  const long long col_b = TRANSPOSED_B ? args.ldb : 1, k_b = TRANSPOSED_B ? 1 : args.ldb;
  const Element* a = args.a + tile.entry * args.batch_stride_a + (tile.row + first) * row_a;
  const Element* b = args.b + tile.entry * args.batch_stride_b + tile.col * col_b;
  GemmArgs entry = entry_of(args, tile.entry);
  entry.c += (tile.row + first) * entry.ldc;
  entry.d += (tile.row + first) * entry.ldd;
  const int steps = IS_HELD ? 1 : ceil_div(args.k, BK);
  Rows(&ring)[STAGES] = rings[warp];

  // The next step's copies, some steps ahead.
  int rows_left = rows, k_ahead = 0;
  const auto fetch = [&](Rows& to) {
    if (rows_left > 0) {
      TileCopies<Rows, !TRANSPOSED_A, WORD_A, 32>(a + k_ahead * k_a, args.lda, rows_left, lane)
          .copy(to, args.k - k_ahead);
      k_ahead += BK;
      if (IS_HELD || k_ahead >= args.k) {
        k_ahead = 0;
        rows_left -= ROW_STEP;
        a += ROW_STEP * row_a;
      }
    }
    cp_async_commit();
  };
  wait_for_previous_kernel();
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) fetch(ring[i]);

  Acc held_b[BK][TN];
  if (IS_HELD) load_b(held_b, b, args.ldb, args.k, cols);

  unsigned stage = 0;
  for (int row = 0; row < rows; row += ROW_STEP) {
    Sums sums = {};
    for (int step = 0; step < steps; ++step) {
      if (!IS_HELD) load_b(held_b, b + step * BK * k_b, args.ldb, args.k - step * BK, cols);
      cp_async_wait<STAGES - 2>();
      __syncwarp();  // every lane's copies of this step are there, and all lanes have read the last step's
      fetch(ring[(stage + STAGES - 1) % STAGES]);
      multiply(sums, ring[stage], held_b);
      stage = (stage + 1) % STAGES;
    }
    if (row + ROW_STEP >= rows) let_next_kernel_start();
    if (args.alpha == 1) {
      write_rows<false>(entry, tile.col, rows - row, cols, sums);
    } else {
      write_rows<true>(entry, tile.col, rows - row, cols, sums);
    }
    entry.c += ROW_STEP * entry.ldc;
    entry.d += ROW_STEP * entry.ldd;
  }
}
