// k18_small_k: a warp holds its columns of B in registers, all of k, and streams rows of A past them to D.
// builds on:      k13_multistage
// what changes:   no shared memory, no barrier; B is read once a warp, A by all lanes together; streaming stores of D
// should help:    a k of a few dozen, where the time is that of writing D
// costs:          registers for BK by TN elements of B; beyond a k of BK they are loaded again for every few rows
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/epilogue.cuh"
#include "tilewright/output_tile.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

constexpr int WARPS = NUM_THREADS / 32;

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

// `to[i][k]` from A at `a`, of which `rows` by `depth` elements are there; the others are zeros. Every lane loads all.
__device__ __forceinline__ void load_a(Acc (&to)[TM][BK], const Element* a, long long lda, int rows, int depth) {
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int k = 0; k < BK; k += WORD_A) {
      if (!GUARDED || (i < rows && k + WORD_A <= depth)) {
        const auto word = load_word<WORD_A>(a + (TRANSPOSED_A ? k * lda + i : i * lda + k));
#pragma unroll
        for (int x = 0; x < WORD_A; ++x) to[i][k + x] = Scalar::widen(word[x]);
      } else {
#pragma unroll
        for (int x = 0; x < WORD_A; ++x) {
          const bool inside = i < rows && k + x < depth;
          to[i][k + x] =
              inside ? Scalar::load(a + (TRANSPOSED_A ? (k + x) * lda + i : i * lda + k + x)) : Scalar::zero();
        }
      }
    }
  }
}

__device__ __forceinline__ void write_row(const GemmArgs& args, int row, int col, int cols, const Acc (&sums)[TN]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < TN; j += WORD) {
    const int mine = column(lane, j);
    if (!GUARDED || mine + WORD <= cols) {
      const auto x = finished<BETA_MODE, WORD>(args, row, col + mine, sums + j);
      Vec<Output::storage, WORD> out;
#pragma unroll
      for (int i = 0; i < WORD; ++i) out[i] = Output::round(x[i]);
      store_word_streaming(args.d + row * args.ldd + col + mine, out);
    } else {
#pragma unroll
      for (int i = 0; i < WORD; ++i) {
        if (mine + i < cols) write_result<BETA_MODE>(args, row, col + mine + i, sums[j + i]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS) k18_small_k(const __grid_constant__ GemmArgs args) {
  const OutputTile tile(args, blockIdx.x);
  const GemmArgs entry = entry_of(args, tile.entry);
  const Element* a = args.a + tile.entry * args.batch_stride_a + tile.row * (TRANSPOSED_A ? 1 : args.lda);
  const Element* b = args.b + tile.entry * args.batch_stride_b + tile.col * (TRANSPOSED_B ? args.ldb : 1);
  const int rows = min(args.m - tile.row, BM), cols = args.n - tile.col;

  Acc held_b[BK][TN];
  if (IS_HELD) load_b(held_b, b, args.ldb, args.k, cols);

  for (int row = threadIdx.x / 32 * TM; row < rows; row += WARPS * TM) {
    const Element* from_a = a + row * (TRANSPOSED_A ? 1 : args.lda);
    Acc sums[TM][TN] = {};
    int k0 = 0;
    do {  // once, where B is held
      const int depth = args.k - k0;
      if (!IS_HELD) load_b(held_b, b + k0 * (TRANSPOSED_B ? 1 : args.ldb), args.ldb, depth, cols);
      Acc some_a[TM][BK];
      load_a(some_a, from_a + k0 * (TRANSPOSED_A ? args.lda : 1), args.lda, rows - row, depth);
#pragma unroll
      for (int k = 0; k < BK; ++k) {
#pragma unroll
        for (int i = 0; i < TM; ++i) {
#pragma unroll
          for (int j = 0; j < TN; ++j) sums[i][j] = Scalar::fma(some_a[i][k], held_b[k][j], sums[i][j]);
        }
      }
      k0 += BK;
    } while (!IS_HELD && k0 < args.k);

#pragma unroll
    for (int i = 0; i < TM; ++i) {
      if (!GUARDED || row + i < rows) write_row(entry, tile.row + row + i, tile.col, cols, sums[i]);
    }
  }
}
