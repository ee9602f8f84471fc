// Tiles of 16-bit elements in shared memory, as they are stored in global memory: ROWS rows of COLS neighbours, moved
// in chunks of eight elements (16 bytes). What lies outside the matrix arrives as zeros. Owns where a chunk lies and
// how it gets there; what a tile is of, and when it is whole, is the kernel's.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

constexpr int CHUNK = 8;  // elements

// Rows one after the other, PAD elements between them.
template <int ROWS, int COLS, int PAD = 0>
struct PlainTile {
  static constexpr int rows = ROWS, cols = COLS, stride = COLS + PAD;
  alignas(128) Scalar::storage elements[ROWS * stride];

  // The chunk that starts at (row, col); col is a multiple of CHUNK.
  __device__ __forceinline__ Scalar::storage* chunk(int row, int col) { return elements + row * stride + col; }
  __device__ __forceinline__ const Scalar::storage* chunk(int row, int col) const {
    return elements + row * stride + col;
  }
  __device__ __forceinline__ const Scalar::storage* chunk(int row, int col, int step) const {
    return chunk(row, col + step);
  }
};

// Chunks of a row exchanged by an XOR with its number, so that the same chunk of eight neighbouring rows lies in eight
// different quarters of the banks. COLS is 16, 32 or a multiple of 64; nothing is wasted.
template <int ROWS, int COLS>
struct SwizzledTile {
  static constexpr int rows = ROWS, cols = COLS;
  static constexpr int row_chunks = COLS / CHUNK < 8 ? COLS / CHUNK : 8;  // that one XOR exchanges
  static_assert(COLS == 16 || COLS == 32 || COLS % 64 == 0, "the XOR stays within a row");
  alignas(128) Scalar::storage elements[ROWS * COLS];

  __device__ __forceinline__ static int offset(int row, int col) {
    const int turn = row / (8 / row_chunks) % row_chunks;  // rows shorter than the 32 banks turn together
    return row * COLS + (col / CHUNK ^ turn) * CHUNK;
  }
  __device__ __forceinline__ Scalar::storage* chunk(int row, int col) { return elements + offset(row, col); }
  __device__ __forceinline__ const Scalar::storage* chunk(int row, int col) const {
    return elements + offset(row, col);
  }

  // The chunk at (row, col + step), where adding carries nothing into the bits of either: the XOR with a step that the
  // compiler knows is then one instruction on the address of (row, col), which serves all steps.
  __device__ __forceinline__ const Scalar::storage* chunk(int row, int col, int step) const {
    return elements + (offset(row, col) ^ step);
  }
};

// A stored matrix seen from a tile's first element: how far it goes on from there, in rows and in elements of a row.
struct TileSource {
  const Scalar::storage* first;
  int ld, rows, cols;

  // On to the tile `step` rows below, or `step` columns to the right.
  template <bool DOWN>
  __device__ __forceinline__ void advance(int step) {
    first += DOWN ? static_cast<long long>(step) * ld : step;
    (DOWN ? rows : cols) -= step;
  }
};

// What the tile of op(A) at (row, k) or of op(B) at (k, col) comes from, as it is stored.
__device__ __forceinline__ TileSource source_a(const GemmArgs& args, int row, int k) {
  const auto* a = args.a + blockIdx.z * args.batch_stride_a;
  const int ld = static_cast<int>(args.lda);
  if (TRANSPOSED_A) return {a + k * args.lda + row, ld, args.k - k, args.m - row};
  return {a + row * args.lda + k, ld, args.m - row, args.k - k};
}
__device__ __forceinline__ TileSource source_b(const GemmArgs& args, int k, int col) {
  const auto* b = args.b + blockIdx.z * args.batch_stride_b;
  const int ld = static_cast<int>(args.ldb);
  if (TRANSPOSED_B) return {b + col * args.ldb + k, ld, args.n - col, args.k - k};
  return {b + k * args.ldb + col, ld, args.k - k, args.n - col};
}

// Eight elements from `from`, of which the first `valid` are the matrix's. Rows are aligned to BYTES.
template <int BYTES>
__device__ __forceinline__ Vec<Scalar::storage, CHUNK> load_chunk(const Scalar::storage* from, int valid) {
  constexpr int word = BYTES / sizeof(Scalar::storage);
  Vec<Scalar::storage, CHUNK> chunk;
#pragma unroll
  for (int i = 0; i < CHUNK; i += word) {
    if (i + word <= valid) {
      *reinterpret_cast<Vec<Scalar::storage, word>*>(&chunk[i]) = load_word<word>(from + i);
    } else {
#pragma unroll
      for (int j = i; j < i + word; ++j) chunk[j] = j < valid ? from[j] : Scalar::storage_zero();
    }
  }
  return chunk;
}

// Calls move(row, col, chunk's source, valid elements) for each chunk of a tile that this thread moves.
template <typename Tile, int THREADS, typename Move>
__device__ __forceinline__ void for_each_chunk(const TileSource& source, Move move) {
  constexpr int row_chunks = Tile::cols / CHUNK, chunks = Tile::rows * row_chunks;
#pragma unroll
  for (int first = 0; first < chunks; first += THREADS) {
    const int index = first + threadIdx.x;
    if (chunks % THREADS != 0 && index >= chunks) break;
    const int row = index / row_chunks, col = index % row_chunks * CHUNK;
    const int valid = !GUARDED ? CHUNK : row < source.rows ? min(max(source.cols - col, 0), CHUNK) : 0;
    move(row, col, source.first + row * source.ld + col, valid);
  }
}

// The tile through registers, by all THREADS of the CTA.
template <int BYTES, int THREADS, typename Tile>
__device__ __forceinline__ void load_tile(Tile& tile, const TileSource& source) {
  for_each_chunk<Tile, THREADS>(source, [&](int row, int col, const Scalar::storage* from, int valid) {
    store_word(tile.chunk(row, col), load_chunk<BYTES>(from, valid));
  });
}

// The same as asynchronous copies, of 16 bytes or, where rows are aligned to less, of 8 or 4.
template <int BYTES, int THREADS, typename Tile>
__device__ __forceinline__ void copy_tile(Tile& tile, const TileSource& source) {
  constexpr int word = BYTES / sizeof(Scalar::storage);
  for_each_chunk<Tile, THREADS>(source, [&](int row, int col, const Scalar::storage* from, int valid) {
    auto* to = tile.chunk(row, col);
#pragma unroll
    for (int i = 0; i < CHUNK; i += word) {
      const int there = min(max(valid - i, 0), word);
      cp_async_zfill<BYTES>(to + i, there > 0 ? from + i : source.first, there * int{sizeof(Scalar::storage)});
    }
  });
}

}  // namespace tilewright
