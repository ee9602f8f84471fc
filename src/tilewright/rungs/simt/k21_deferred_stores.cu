// k21_deferred_stores: results leave shared memory by TMA while the next tile is multiplied.
// builds on:      k14_warp_specialised
// what changes:   as many CTAs as SMs, each with tiles in turn; a warp puts its results into an outbox of its own in
//                 shared memory, has TMA store it, and goes on with the next tile
// should help:    a k of a few dozen, where writing D takes about as long as the FMAs: the two now overlap
// costs:          an outbox as large as the tile; D in 16-byte rows, else results are written as before
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/proxy.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/stage_ring.cuh"
#include "tilewright/tma.cuh"

constexpr int BOX_COLS = 32, BOXES = WN / BOX_COLS;

// A warp's results, in boxes of 32 columns: rows of 128 bytes, swizzled as TMA expects it, so that eight lanes that
// store together meet 32 banks.
struct Outbox {
  alignas(1024) Output::storage boxes[BOXES][WM][BOX_COLS];

  // Where columns col to col + 3 of a row lie.
  __device__ __forceinline__ Output::storage* at(int row, int col) {
    return &boxes[col / BOX_COLS][row][(col % BOX_COLS / 4 ^ row % 8) * 4];
  }
};

struct Shared {
  Outbox outboxes[TMA_OUTPUT ? MATH_THREADS / 32 : 1];
  StageRing ring;
};

// The results of a warp's part of a tile to its outbox, and on their way to D.
__device__ __forceinline__ void send(const TmaArgs& args, const OutputTile& tile, const ThreadPlace& place,
                                     Outbox& outbox, const ThreadSums& sums) {
  const GemmArgs entry = entry_of(args, tile.entry);
  const int lane = threadIdx.x % 32, in_row = lane / LANE_COLS * 4, in_col = lane % LANE_COLS * 4;
  if (lane == 0) tma_wait_read<0>();
  __syncwarp();  // the last tile's results have left before the outbox is filled again
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
      const int to_row = i / 4 * ROW_STEP + i % 4, to_col = j / 4 * COL_STEP;
      const int row = tile.row + place.row + to_row, col = tile.col + place.col + to_col;
      if (GUARDED && (row >= args.m || col >= args.n)) continue;
      const auto x = finished<BETA_MODE, 4>(entry, row, col, &sums[i][j]);
      Vec4<Output::storage> four;
#pragma unroll
      for (int y = 0; y < 4; ++y) four[y] = Output::round(x[y]);
      store4(outbox.at(in_row + to_row, in_col + to_col), four);
    }
  }
  fence_proxy_async();  // what this lane has stored, for TMA to read
  __syncwarp();
  if (lane == 0) {
    for (int box = 0; box < BOXES; ++box) {
      tma_store(&args.map_d, outbox.boxes[box], tile.col + place.col + box * BOX_COLS, tile.row + place.row,
                tile.entry);
    }
    tma_commit();
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS)
    k21_deferred_stores(const __grid_constant__ TmaArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());
  StageRing& ring = shared.ring;

  if (threadIdx.x == 0) ring.init();
  __syncthreads();  // the barriers are there before anyone waits for them
  wait_for_previous_kernel();

  const int tiles = tiles_of(args), steps = steps_of(args);
  Slot slot;
  if (threadIdx.x >= MATH_THREADS) {
    release_registers<COPY_REGISTERS>();
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
      copy_steps(args, OutputTile(args, index), 0, steps, ring, slot);
    }
    end_copies(ring, slot);
    return;
  }

  acquire_registers<MATH_REGISTERS>();
  const ThreadPlace place(threadIdx.x);
  ThreadFragments fragments[2];
  mbarrier_wait(&ring.full[0], 0);
  if (steps > 0) load_first(fragments, ring, place);
  for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
    ThreadSums sums = {};
    const bool has_next = index + static_cast<int>(gridDim.x) < tiles;
    multiply_stages(sums, fragments, ring, slot, place, 2 * steps, has_next);
    if (!has_next) let_next_kernel_start();
    const OutputTile tile(args, index);
    if (TMA_OUTPUT) {
      send(args, tile, place, shared.outboxes[threadIdx.x / 32], sums);
    } else {
      write_sums(args, tile, place, sums);
    }
  }
  if (TMA_OUTPUT && threadIdx.x % 32 == 0) tma_wait_read<0>();  // shared memory lasts until all of it has been read
}
