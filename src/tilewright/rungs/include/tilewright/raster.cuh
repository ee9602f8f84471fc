// In which order a kernel takes the tiles of D, where CTAs that run at one time should share rows of A and columns of B
// in the L2. Expects GROUP_M.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

// A tile's row, column and batch entry, counted in tiles.
struct TileIndex {
  int row, col, entry;
};

// Tile number `index` of `rows` × `cols` in each entry: GROUP_M rows of tiles are walked column by column before the
// next ones. With GROUP_M = 1 the order is the naive one, row by row.
__device__ __forceinline__ TileIndex tile_at(int index, int rows, int cols) {
  const int entry = index / (rows * cols);
  index -= entry * rows * cols;
  const int first = index / (GROUP_M * cols) * GROUP_M;
  const int height = min(GROUP_M, rows - first);
  const int within = index - first * cols;
  return {first + within % height, within / height, entry};
}

}  // namespace tilewright
