// A warpgroup's part of a product by wgmma: tiles as TMA brings them, their product, results to D. Expects BM, BN, BK,
// TILE_K, STAGES, TRANSPOSED_A, TRANSPOSED_B, BATCHED_A, BATCHED_B, BETA_MODE and PAIRED_OUTPUT. Owns how tiles lie in
// shared memory and which thread holds what; who loads and when, is the kernel's.
#pragma once

#include "tilewright/output_tile.cuh"
#include "tilewright/pairs.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/ring.cuh"
#include "tilewright/tma.cuh"
#include "tilewright/warp.cuh"
#include "tilewright/wgmma.cuh"

namespace tilewright {

constexpr int WARPGROUP = 128, WARPGROUP_ROWS = 64;  // threads, and rows of one wgmma

// A step along k is BK elements of 16 bits, or half as many of 32: TILE_K. One wgmma takes 32 bytes of it.
constexpr int WGMMA_K = 32 / sizeof(Scalar::storage);

// ROWS × COLS elements as they are stored, in panels of at most 128 bytes across. The rows of a panel lie one after the
// other, their 16-byte chunks exchanged by TMA's swizzle as wide as the panel: rows that wgmma reads together lie in
// different banks.
template <int ROWS, int COLS>
struct TmaTile {
  static constexpr int row_bytes = COLS * sizeof(Scalar::storage);
  static constexpr int span_bytes = row_bytes < 128 ? row_bytes : 128;
  static constexpr int panel_cols = span_bytes / sizeof(Scalar::storage), panels = COLS / panel_cols;
  static_assert(span_bytes == 32 || span_bytes == 64 || span_bytes == 128, "a panel is as wide as a swizzle's span");
  static_assert(COLS % panel_cols == 0, "panels make up the tile");
  static constexpr int panel_bytes = ROWS * span_bytes, bytes = panels * panel_bytes;

  alignas(1024) unsigned char memory[bytes];

  // One thread has the tile at (row, col) of the stored matrix brought, and `full` count its bytes.
  __device__ __forceinline__ void load(const TensorMap* map, Mbarrier* full, int row, int col, int entry) {
#pragma unroll
    for (int i = 0; i < panels; ++i) tma_load(memory + i * panel_bytes, map, full, col + i * panel_cols, row, entry);
  }

  // For wgmma, where rows run along k: from row `outer` on, element `k` of the tile.
  __device__ __forceinline__ unsigned long long along_k(int outer, int k) const {
    const int offset =
        k / panel_cols * panel_bytes + outer * span_bytes + k % panel_cols * int{sizeof(Scalar::storage)};
    return descriptor_at(smem_descriptor(memory, 16, 8 * span_bytes, span_bytes), offset);
  }

  // Where rows run across k: from column `outer` on, a panel's first; row `k` of the tile, a multiple of 8.
  __device__ __forceinline__ unsigned long long across_k(int outer, int k) const {
    const int offset = outer / panel_cols * panel_bytes + k * span_bytes;
    return descriptor_at(smem_descriptor(memory, panel_bytes, 8 * span_bytes, span_bytes), offset);
  }
};

// One step's tiles of A and B.
struct Stage {
  TmaTile<TRANSPOSED_A ? TILE_K : BM, TRANSPOSED_A ? BM : TILE_K> As;
  TmaTile<TRANSPOSED_B ? BN : TILE_K, TRANSPOSED_B ? TILE_K : BN> Bs;

  static constexpr int bytes = decltype(As)::bytes + decltype(Bs)::bytes;

  // One thread has both tiles brought, for the CTA tile at (row, col) of D and step `k`, and announces their bytes.
  __device__ __forceinline__ void load(const TmaArgs& args, Mbarrier* full, int row, int col, int k, int entry) {
    mbarrier_arrive_expect_tx(full, bytes);
    As.load(&args.map_a, full, TRANSPOSED_A ? k : row, TRANSPOSED_A ? row : k, BATCHED_A ? entry : 0);
    Bs.load(&args.map_b, full, TRANSPOSED_B ? col : k, TRANSPOSED_B ? k : col, BATCHED_B ? entry : 0);
  }
};

// BLOCKS times 64 rows by BN columns of sums.
template <int BLOCKS>
struct Sums {
  float x[BLOCKS][BN / 2];
};

// Issues the products of one stage for the rows from `row` of the tile on; `is_first` overwrites the sums.
template <int BLOCKS>
__device__ __forceinline__ void multiply(Sums<BLOCKS>& sums, const Stage& stage, int row, bool is_first) {
#pragma unroll
  for (int k = 0; k < TILE_K; k += WGMMA_K) {
    const auto b = TRANSPOSED_B ? stage.Bs.along_k(0, k) : stage.Bs.across_k(0, k);
#pragma unroll
    for (int i = 0; i < BLOCKS; ++i) {
      const int outer = row + i * WARPGROUP_ROWS;
      const auto a = TRANSPOSED_A ? stage.As.across_k(outer, k) : stage.As.along_k(outer, k);
      wgmma<BN, Scalar, TRANSPOSED_A, !TRANSPOSED_B>(sums.x[i], a, b, !is_first || k > 0);
    }
  }
}

template <int BLOCKS>
__device__ __forceinline__ void clear(Sums<BLOCKS>& sums) {
#pragma unroll
  for (int i = 0; i < BLOCKS; ++i) {
#pragma unroll
    for (int j = 0; j < BN / 2; ++j) sums.x[i][j] = 0.0f;
  }
}

// Tells the compiler that the sums are there: behind the wait for them.
template <int BLOCKS>
__device__ __forceinline__ void settle(Sums<BLOCKS>& sums) {
#pragma unroll
  for (int i = 0; i < BLOCKS; ++i) wgmma_registers(sums.x[i]);
}

// The warpgroup's results, whose first is (row, col) of D, from the threads' registers: two neighbours at a time.
template <int BLOCKS>
__device__ __forceinline__ void write_sums(const GemmArgs& args, int row, int col, const Sums<BLOCKS>& sums) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  row += 16 * warp + lane / 4;
  col += lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < BLOCKS; ++i) {
#pragma unroll
    for (int j = 0; j < BN / 8; ++j) {
      const float* four = sums.x[i] + 4 * j;
      write_pair<BETA_MODE, PAIRED_OUTPUT>(args, row + i * WARPGROUP_ROWS, col + 8 * j, four);
      write_pair<BETA_MODE, PAIRED_OUTPUT>(args, row + i * WARPGROUP_ROWS + 8, col + 8 * j, four + 2);
    }
  }
}

}  // namespace tilewright
