// Which part of D a CTA of a one-dimensional grid computes. Such a grid takes any sizes; one of three dimensions has at
// most 65535 CTAs along two of them. Expects BM and BN.
#pragma once

#include "tilewright/ceil_div.cuh"

namespace tilewright {

// How many tiles D has along its rows, along its columns, and in all entries of the batch, which the limit of a grid,
// or a rule of those that have fewer CTAs, keeps within an int.
__device__ __forceinline__ int tile_rows_of(const GemmArgs& args) { return ceil_div(args.m, BM); }
__device__ __forceinline__ int tile_cols_of(const GemmArgs& args) { return ceil_div(args.n, BN); }
__device__ __forceinline__ int tiles_of(const GemmArgs& args) {
  return tile_rows_of(args) * tile_cols_of(args) * args.batch;
}

// Tile number `index`, row by row and entry by entry of the batch: its first row and column.
struct OutputTile {
  int row, col, entry;

  __device__ __forceinline__ OutputTile(const GemmArgs& args, int index) {
    const int tile_rows = tile_rows_of(args), tile_cols = tile_cols_of(args);
    entry = index / (tile_rows * tile_cols);
    index -= entry * (tile_rows * tile_cols);
    row = index / tile_cols * BM;
    col = index % tile_cols * BN;
  }
};

// `args` with C and D of one batch entry, for a kernel whose grid does not say which.
__device__ __forceinline__ GemmArgs entry_of(const GemmArgs& args, int entry) {
  GemmArgs one = args;
  one.c += entry * args.batch_stride_c;
  one.d += entry * args.batch_stride_d;
  return one;
}

}  // namespace tilewright
