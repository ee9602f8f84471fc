// t08_deferred_epilogue: a tile's results leave while the next tile is multiplied, by stmatrix and TMA.
// builds on:      t07_persistent
// what changes:   finished sums are scaled and packed into half the registers; 64 columns at a time they go through a
//                 swizzled buffer in each of the next tile's first steps, between its products' start and their end
// should help:    tensor cores no longer wait for results to be written; TMA writes whole lines
// costs:          registers and shared memory for results on their way; 16-bit results in 16-byte rows, else as before
// preconditions:  as before
#include "tilewright/dependent.cuh"
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

// How the results of a consumer's tiles leave: beside the next tile's products where Out has 16 bits and TMA takes D.
template <typename Out, bool BY_TMA>
struct Results {
  static constexpr int stores_in_flight = CHUNKS % 2 == 0;  // an odd count ends a tile in the next one's first outbox

  const TmaArgs& args;
  Outbox* outboxes;            // the warp's two
  unsigned pairs[CHUNKS][16];  // of each chunk: eight columns after eight, rows r and r + 8 of each
  int row, col, entry;         // of the warp's first
  bool are_there = false;

  __device__ __forceinline__ Results(const TmaArgs& args, Outbox* outboxes) : args(args), outboxes(outboxes) {}

  // Scales and rounds a tile's sums, of which the warpgroup's first is (row, col) of the entry.
  __device__ __forceinline__ void take(const Sums<BLOCKS>& sums, int first_row, int first_col, int of_entry) {
    row = first_row + threadIdx.x / 32 % 4 * 16, col = first_col, entry = of_entry;
    are_there = true;
    const GemmArgs one = entry_of(args, entry);
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int block = chunk / ROW_CHUNKS, in_col = chunk % ROW_CHUNKS * CHUNK_COLS + j / 2 * 8;
        pairs[chunk][j] = packed_pair<BETA_MODE, PAIRED_OUTPUT, Out>(
            one, row + block * WARPGROUP_ROWS + lane / 4 + j % 2 * 8, col + in_col + lane % 4 * 2,
            sums.x[block] + in_col / 2 + j % 2 * 2);
      }
    }
  }

  // Sends one chunk from the outbox that was used least recently.
  __device__ __forceinline__ void send(int chunk) {
    if (!are_there) return;
    const int lane = threadIdx.x % 32;
    unsigned char* outbox = outboxes[chunk % 2].memory;
    if (lane == 0) tma_wait_read<stores_in_flight>();
    __syncwarp();  // the last store from this outbox has read it before it is filled again
#pragma unroll
    for (int j = 0; j < 16; j += 4) {
      const unsigned four[4] = {pairs[chunk][j], pairs[chunk][j + 1], pairs[chunk][j + 2], pairs[chunk][j + 3]};
      const int in_row = lane % 16, eighth = j / 2 + lane / 16;  // of the chunk: what this lane points stmatrix to
      stmatrix(outbox + in_row * 128 + (eighth ^ in_row % 8) * 16, four);
    }
    fence_proxy_async();  // what this lane has stored, for TMA to read
    __syncwarp();
    if (lane == 0) {
      tma_store(&args.map_d, outbox, col + chunk % ROW_CHUNKS * CHUNK_COLS, row + chunk / ROW_CHUNKS * WARPGROUP_ROWS,
                entry);
      tma_commit();
    }
  }

  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int chunk = 0; chunk < CHUNKS; ++chunk) send(chunk);
    if (threadIdx.x % 32 == 0) tma_wait_read<0>();  // shared memory lasts until all of it has been read
  }
};

// Otherwise they are written at once.
template <typename Out>
struct Results<Out, false> {
  const TmaArgs& args;

  __device__ __forceinline__ Results(const TmaArgs& args, Outbox*) : args(args) {}
  __device__ __forceinline__ void take(const Sums<BLOCKS>& sums, int first_row, int first_col, int entry) {
    write_sums(entry_of(args, entry), first_row, first_col, sums);
  }
  __device__ __forceinline__ void send(int) {}
  __device__ __forceinline__ void finish() {}
};

extern "C" __global__ void __launch_bounds__(NUM_THREADS, 1)
    t08_deferred_epilogue(const __grid_constant__ TmaArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());

  const int tile_rows = tile_rows_of(args), tile_cols = tile_cols_of(args), tiles = tiles_of(args);
  const int steps = ceil_div(args.k, TILE_K);

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(&shared.full[i], 1);
      mbarrier_init(&shared.empty[i], CONSUMER_WARPS);
    }
    fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there before anyone waits for them
  wait_for_previous_kernel();

  const int warpgroup = __shfl_sync(FULL_WARP, threadIdx.x / WARPGROUP, 0);  // the compiler sees that a warp has one
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
  Results<Output, TMA_OUTPUT> results(args, shared.outboxes[threadIdx.x / 32 - 4]);
  Sums<BLOCKS> sums;

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
#pragma unroll
    for (int step = 0; step < CHUNKS; ++step) {  // the results of the tile before leave beside the first products
      if (step < steps) start(step);
      results.send(step);
      if (step < steps) finish(step);
    }
    for (int step = CHUNKS; step < steps; ++step) {
      start(step);
      finish(step);
    }
    const TileIndex tile = tile_at(index, tile_rows, tile_cols);  // computed beside the last products
    wgmma_wait<0>();
    settle(sums);
    if (steps == 0) clear(sums);
    if (steps > 0) release_previous();

    results.take(sums, tile.row * BM + row, tile.col * BN, tile.entry);
  }
  let_next_kernel_start();
  results.finish();
}
