// t08_deferred_epilogue: a tile's results leave while the next tile is multiplied, by stmatrix and TMA.
// builds on:      t07_persistent
// what changes:   finished sums are scaled and packed into half the registers; 64 columns at a time they go through a
//                 swizzled buffer in each of the next tile's first steps, between its products' start and their end
// should help:    tensor cores no longer wait for results to be written; TMA writes whole lines
// costs:          registers and shared memory for results on their way; 16-bit results in 16-byte rows, else as before
// preconditions:  as before
#include "tilewright/matrix.cuh"
#include "tilewright/raster.cuh"
#include "tilewright/wgmma_tile.cuh"

constexpr int CONSUMER_ROWS = BM / CONSUMERS, CONSUMER_WARPS = 4 * CONSUMERS, BLOCKS = CONSUMER_ROWS / WARPGROUP_ROWS;
constexpr int CHUNK_COLS = 64, ROW_CHUNKS = BN / CHUNK_COLS, CHUNKS = BLOCKS * ROW_CHUNKS;

// What one warp sends at a time: 16 rows of a chunk, each 128 bytes, swizzled as TMA expects it.
struct Outbox {
  alignas(1024) unsigned char memory[16 * 128];
};

struct Shared {
  Stage stages[STAGES];
  Outbox outboxes[CONSUMER_WARPS][2];
  Mbarrier full[STAGES];   // one arrival and the stage's bytes: its tiles have come
  Mbarrier empty[STAGES];  // an arrival of each consuming warp: its products have read it
};

// Results of one thread, ready to be stored: of each chunk sixteen registers of two neighbours.
struct Results {
  unsigned pairs[CHUNKS][16];
  int row, col, entry;  // of the warp's first
  bool are_there = false;
};

// Scales and rounds the sums of the warp whose first result is (row, col) of the entry.
__device__ __forceinline__ void pack(Results& results, const TmaArgs& args, int row, int col, int entry,
                                     const Sums<BLOCKS>& sums) {
  const GemmArgs one = entry_of(args, entry);
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int chunk = 0; chunk < CHUNKS; ++chunk) {
#pragma unroll
    for (int j = 0; j < 16; ++j) {  // eight columns after eight, rows r and r + 8 of each
      const int at_row = row + chunk / ROW_CHUNKS * WARPGROUP_ROWS + lane / 4 + j % 2 * 8;
      const int in_col = chunk % ROW_CHUNKS * CHUNK_COLS + j / 2 * 8;
      results.pairs[chunk][j] = packed_pair<BETA_MODE, PAIRED_OUTPUT>(
          one, at_row, col + in_col + lane % 4 * 2, sums.x[chunk / ROW_CHUNKS] + in_col / 2 + j % 2 * 2);
    }
  }
  results.row = row, results.col = col, results.entry = entry;
  results.are_there = true;
}

// Sends one chunk from the warp's outbox that was used least recently.
__device__ __forceinline__ void send(const Results& results, int chunk, const TmaArgs& args, Outbox* outboxes) {
  const int lane = threadIdx.x % 32;
  unsigned char* outbox = outboxes[chunk % 2].memory;
  if (lane == 0) tma_wait_read<1>();
  __syncwarp();  // the store before the last has read this outbox before it is filled again
#pragma unroll
  for (int j = 0; j < 16; j += 4) {
    const int row = lane % 16, eighth = j / 2 + lane / 16;  // of the chunk: what this lane points stmatrix to
    const unsigned four[4] = {results.pairs[chunk][j], results.pairs[chunk][j + 1], results.pairs[chunk][j + 2],
                              results.pairs[chunk][j + 3]};
    stmatrix(outbox + row * 128 + (eighth ^ row % 8) * 16, four);
  }
  fence_proxy_async();  // what this lane has stored, for TMA to read
  __syncwarp();
  if (lane == 0) {
    tma_store(&args.map_d, outbox, results.col + chunk % ROW_CHUNKS * CHUNK_COLS,
              results.row + chunk / ROW_CHUNKS * WARPGROUP_ROWS, results.entry);
    tma_commit();
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1) t08_deferred_epilogue(const __grid_constant__ TmaArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  const int tile_rows = (args.m + BM - 1) / BM, tile_cols = (args.n + BN - 1) / BN;
  const int tiles = tile_rows * tile_cols * args.batch;
  const int steps = (args.k + TILE_K - 1) / TILE_K;

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&shared.full[i], 1);
      mbarrier_init(&shared.empty[i], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there before anyone waits for them

  const int warpgroup = threadIdx.x / WARPGROUP;
  Slot slot;  // goes on from tile to tile, as the ring does
  if (warpgroup == 0) {
    release_registers<PRODUCER_REGISTERS>();
    if (threadIdx.x != 0) return;
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
      const TileIndex tile = tile_at(index, tile_rows, tile_cols);
      for (int step = 0; step < steps; ++step, slot.advance()) {
        mbarrier_wait(&shared.empty[slot.stage], slot.parity ^ 1);  // passes at once on the first turn
        shared.stages[slot.stage].load(args, &shared.full[slot.stage], tile.row * BM, tile.col * BN, step * TILE_K,
                                       tile.entry);
      }
    }
    return;
  }

  acquire_registers<CONSUMER_REGISTERS>();
  const int row = (warpgroup - 1) * CONSUMER_ROWS;
  const int warp = threadIdx.x / 32 % 4;
  Outbox* outboxes = shared.outboxes[(warpgroup - 1) * 4 + warp];
  Sums<BLOCKS> sums;
  Results results;

  int previous = 0;  // the stage whose products may still run
  auto start = [&](int step) {
    mbarrier_wait(&shared.full[slot.stage], slot.parity);
    wgmma_fence();  // the sums are the tensor cores' from here
    multiply(sums, shared.stages[slot.stage], row, step == 0);
    wgmma_commit();
  };
  auto release_previous = [&] {
    if (threadIdx.x % 32 == 0) mbarrier_arrive(&shared.empty[previous]);
  };
  auto finish = [&](int step) {
    wgmma_wait<1>();  // the products of the step before are done, this step's run on
    if (step > 0) release_previous();
    previous = slot.stage;
    slot.advance();
  };

  for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
    const TileIndex tile = tile_at(index, tile_rows, tile_cols);

#pragma unroll
    for (int step = 0; step < CHUNKS; ++step) {  // the results of the tile before leave beside the first products
      if (step < steps) start(step);
      if (TMA_OUTPUT && results.are_there) send(results, step, args, outboxes);
      if (step < steps) finish(step);
    }
    for (int step = CHUNKS; step < steps; ++step) {
      start(step);
      finish(step);
    }
    wgmma_wait<0>();
    settle(sums);
    if (steps == 0) clear(sums);
    if (steps > 0) release_previous();

    const int first_row = tile.row * BM + row, first_col = tile.col * BN;
    if constexpr (TMA_OUTPUT)
      pack(results, args, first_row + 16 * warp, first_col, tile.entry, sums);
    else
      write_sums(entry_of(args, tile.entry), first_row, first_col, sums);
  }
  if constexpr (TMA_OUTPUT) {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk)
      if (results.are_there) send(results, chunk, args, outboxes);
    if (threadIdx.x % 32 == 0) tma_wait_read<0>();  // shared memory lasts until all of it has been read
  }
}
