// k20_along_k: a skinny product whose large operand is stored along k: its rows stay so, and are read four k at a time.
// builds on:      k16_small_m
// what changes:   tiles hold rows along k, filled by 16-byte copies; a thread reads four k of a row at once, so nothing
//                 is ever transposed; the large operand is A or B, whichever is stored along k
// should help:    x·Wᵀ for a few rows of x, a matrix times a few columns: at the rate of reading the matrix
// costs:          four times the registers for fragments; both factors of an FMA often in one register bank
// preconditions:  A or B is stored along k; any size, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"
#include "tilewright/k_major.cuh"
#include "tilewright/output_tile.cuh"
#include "tilewright/slices.cuh"

using Acc = Scalar::accumulate;

struct Stage {
  AlongKTile<BN> large;
  AlongKTile<BM> small;
};

struct Shared {
  Stage stages[STAGES];
  unsigned arrived;  // how many slices had come before this one
};

// What a CTA computes: BN rows of the large operand times BM of the small one, over a slice of k.
struct Part {
  int large, small, entry, slice, index;

  __device__ __forceinline__ explicit Part(const GemmArgs& args) {
    const int larges = ceil_div(LARGE_IS_B ? args.n : args.m, BN);
    const int smalls = ceil_div(LARGE_IS_B ? args.m : args.n, BM);
    slice = blockIdx.x % SPLIT_K;
    index = blockIdx.x / SPLIT_K;
    small = index % smalls * BM;  // neighbours share rows of the large operand
    large = index / smalls % larges * BN;
    entry = index / smalls / larges;
  }
};

// Which of the CTA's rows a thread has, of either operand: every LANES_N-th and every LANES_M-th. Neighbouring lanes
// share a row of the large operand, lanes two apart one of the small: reads of either take half as many wavefronts
// then.
struct Place {
  int large, small;

  __device__ __forceinline__ explicit Place(int thread) {
    constexpr int pairs = LANES_M / 2 > 1 ? LANES_M / 2 : 1;
    const int warp = thread / 32, lane = thread % 32;
    large = warp * WN + (LANES_M == 1 ? lane : lane / 2 % 2 + lane / (2 * LANES_M) * 2);
    small = LANES_M == 1 ? 0 : lane % 2 + lane / 4 % pairs * 2;
  }
};

// Four k of COUNT rows, STRIDE apart, to [k][row].
template <int COUNT, int STRIDE, int SIZE>
__device__ __forceinline__ void load_four(Acc (&to)[4][COUNT], const AlongKTile<SIZE>& from, int row, int k) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const auto four = load4(&from.elements[row + i * STRIDE][k]);
#pragma unroll
    for (int x = 0; x < 4; ++x) to[x][i] = Scalar::widen(four[x]);
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS) k20_along_k(const __grid_constant__ GemmArgs args) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_smem());
  Stage* stages = shared.stages;

  const Part part(args);
  const Place place(threadIdx.x);

  const SliceSteps<SPLIT_K> steps(args, part.slice);

  const auto* a = args.a + part.entry * args.batch_stride_a;
  const auto* b = args.b + part.entry * args.batch_stride_b;
  const long long large_ld = LARGE_IS_B ? args.ldb : args.lda, small_ld = LARGE_IS_B ? args.lda : args.ldb;
  const int k0 = steps.first * BK;
  const auto* large = (LARGE_IS_B ? b : a) + part.large * large_ld + k0;
  const auto* small = (LARGE_IS_B ? a : b) + (SMALL_ALONG_K ? part.small * small_ld + k0 : part.small + k0 * small_ld);
  TileCopies<AlongKTile<BN>, true, WORD_LARGE, NUM_THREADS> copies_large(
      large, large_ld, (LARGE_IS_B ? args.n : args.m) - part.large, threadIdx.x);
  TileCopies<AlongKTile<BM>, SMALL_ALONG_K, WORD_SMALL, NUM_THREADS> copies_small(
      small, small_ld, (LARGE_IS_B ? args.m : args.n) - part.small, threadIdx.x);

  // The next step's tiles into the next stage. Past the last one the group is empty, so that waits count the same
  // everywhere.
  int fetched = 0, free_stage = 0;
  auto fetch = [&] {
    if (fetched < steps.count) {
      copies_large.copy(stages[free_stage].large, args.k - (steps.first + fetched) * BK);
      copies_small.copy(stages[free_stage].small, args.k - (steps.first + fetched) * BK);
    }
    cp_async_commit();
    ++fetched;
    free_stage = free_stage + 1 < STAGES ? free_stage + 1 : 0;
  };

  wait_for_previous_kernel();
#pragma unroll
  for (int i = 0; i < STAGES - 1; ++i) fetch();

  Acc sums[TM][TN] = {};
  int current = 0;
  for (int step = 0; step < steps.count; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this stage is whole, and everyone has read the one before, which is filled again
    fetch();
    const Stage& stage = stages[current];
    current = current + 1 < STAGES ? current + 1 : 0;

#pragma unroll
    for (int k = 0; k < BK; k += 4) {
      Acc some_large[4][TN], some_small[4][TM];
      load_four<TN, LANES_N>(some_large, stage.large, place.large, k);
      load_four<TM, LANES_M>(some_small, stage.small, place.small, k);
#pragma unroll
      for (int x = 0; x < 4; ++x) outer_product(sums, some_small[x], some_large[x]);
    }
  }

  let_next_kernel_start();
  if (!add_slices<SPLIT_K, SLICE_GROUP, NUM_THREADS, TM * TN>(args, part.index, part.slice, &sums[0][0],
                                                              shared.arrived)) {
    return;
  }
  const GemmArgs entry = entry_of(args, part.entry);
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int of_large = part.large + place.large + j * LANES_N, of_small = part.small + place.small + i * LANES_M;
      const int row = LARGE_IS_B ? of_small : of_large, col = LARGE_IS_B ? of_large : of_small;
      if (GUARDED && (row >= args.m || col >= args.n)) continue;
      write_result<BETA_MODE>(entry, row, col, sums[i][j]);
    }
  }
}
