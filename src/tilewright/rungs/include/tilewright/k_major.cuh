// Tiles in shared memory, from operands stored either way round. An element's place is the same for every layout, so a
// kernel that multiplies such tiles knows nothing of layouts. What lies outside the matrix arrives as zeros. Expects
// BK. Owns where an element lies and how it gets there; when a tile is whole is the kernel's.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

// SIZE rows of op(A) or columns of op(B), k by k. A k is four elements longer than its tile: it stays aligned to 16
// bytes, and eight of them with four neighbours each, as a transposing copy stores them, lie in 32 banks.
template <int SIZE>
struct KMajorTile {
  static constexpr int WIDTH = SIZE;
  static constexpr bool IS_ALONG_K = false;
  alignas(16) Scalar::storage elements[BK][WIDTH + 4];

  __device__ __forceinline__ Scalar::storage* at(int across, int k) { return &elements[k][across]; }
};

// The same row by row, each along k. Four elements more, so that a k of eight neighbours, four each, lie in 32 banks.
template <int SIZE>
struct AlongKTile {
  static constexpr int WIDTH = SIZE;
  static constexpr bool IS_ALONG_K = true;
  alignas(16) Scalar::storage elements[WIDTH][BK + 4];

  __device__ __forceinline__ Scalar::storage* at(int across, int k) { return &elements[across][k]; }
};

// One thread's share of an operand's tiles, copied asynchronously by THREADS threads, one tile after the other along k.
// Where stored rows run as the tile's do, WORD neighbours are copied together; else each element by itself, which
// transposes.
template <typename Tile, bool ALONG_K, int WORD, int THREADS>
class TileCopies {
  static constexpr int WIDTH = Tile::WIDTH;
  static constexpr int rows = ALONG_K ? WIDTH : BK, cols = ALONG_K ? BK : WIDTH;  // of a tile as it is stored
  static constexpr int row_words = cols / WORD, words = rows * row_words;
  static_assert(ALONG_K == Tile::IS_ALONG_K || WORD == 1, "what is transposed is copied element by element");
  static_assert(THREADS % row_words == 0 || row_words % THREADS == 0, "a thread's words lie in a rectangle");
  static_assert(words % THREADS == 0 || words < THREADS, "all passes but a single one are whole");

 public:
  // From `first` on, the first element of the tile at k = 0; `width` is how far the matrix goes on from there across k.
  __device__ __forceinline__ TileCopies(const Scalar::storage* first, long long ld, int width, int thread)
      : row_(thread / row_words), col_(thread % row_words * WORD), width_(width), ld_(ld) {
    next_ = first + row_ * ld + col_;
  }

  // This thread's part of the next tile, of which `depth` k are the matrix's.
  __device__ __forceinline__ void copy(Tile& to, int depth) {
    Tile* const tiles[1] = {&to};
    copy(tiles, depth);
  }

  // Of the next TILES tiles, which have `depth` k between them: neighbours along k share most of an address.
  template <int TILES>
  __device__ __forceinline__ void copy(Tile* const (&to)[TILES], int depth) {
    // Most tiles lie inside the matrix, also of a size that no tile divides.
    if (!GUARDED || (width_ >= WIDTH && depth >= TILES * BK)) {
      copy_words<false>(to, depth);
    } else {
      copy_words<true>(to, depth);
    }
    next_ += TILES * tile_distance();
  }

 private:
  __device__ __forceinline__ long long tile_distance() const { return ALONG_K ? BK : BK * ld_; }

  template <bool AT_EDGE, int TILES>
  __device__ __forceinline__ void copy_words(Tile* const (&to)[TILES], int depth) const {
#pragma unroll
    for (int i = 0; i < words; i += THREADS) {
      const int down = i / row_words, right = i % row_words * WORD;
      const int row = row_ + down, col = col_ + right;
      if (words < THREADS && row >= rows) break;
      const auto* from = next_ + down * ld_ + right;
#pragma unroll
      for (int tile = 0; tile < TILES; ++tile) {
        auto* place = ALONG_K ? to[tile]->at(row, col) : to[tile]->at(col, row);
        copy_word<AT_EDGE>(place, from + tile * tile_distance(), row, col, depth - tile * BK);
      }
    }
  }

  // A word of the tile's (row, col) as it is stored.
  template <bool AT_EDGE>
  __device__ __forceinline__ void copy_word(Scalar::storage* to, const Scalar::storage* from, int row, int col,
                                            int depth) const {
    if constexpr (AT_EDGE) {
      const int line = ALONG_K ? width_ - row : depth - row, rest = ALONG_K ? depth - col : width_ - col;
      const int there = WORD == 1 ? line > 0 && rest > 0 : line > 0 ? min(max(rest, 0), WORD) : 0;
      cp_async_zfill<WORD * sizeof(Scalar::storage)>(to, from, there * int{sizeof(Scalar::storage)});
    } else {
      cp_async<WORD * sizeof(Scalar::storage)>(to, from);
    }
  }

  int row_, col_, width_;
  long long ld_;
  const Scalar::storage* next_;
};

}  // namespace tilewright
