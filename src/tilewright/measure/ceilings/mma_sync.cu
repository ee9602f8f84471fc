// mma_sync: CHAINS independent sums a warp, each the same four products again and again, all operands in registers.
#include "tilewright/mma.cuh"

constexpr int STEPS_K = DEPTH / STEP_K;

__device__ __forceinline__ unsigned packed(int low, int high) {
  return Element::round(low).bits | static_cast<unsigned>(Element::round(high).bits) << 16;
}

extern "C" __global__ void __launch_bounds__(THREADS) mma_sync(const __grid_constant__ CeilingArgs args) {
  const int lane = threadIdx.x % 32, r = lane / 4, c = lane % 4 * 2;

  unsigned a[STEPS_K][4], b[CHAINS][STEPS_K / 2][2];  // B is the same in two steps
#pragma unroll
  for (int step = 0; step < STEPS_K; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = r + i % 2 * 8, k = STEP_K * step + c + i / 2 * 8;
      a[step][i] = packed(a_at(row, k, args.seed), a_at(row, k + 1, args.seed));
    }
  }
#pragma unroll
  for (int chain = 0; chain < CHAINS; ++chain) {
#pragma unroll
    for (int i = 0; i < STEPS_K; ++i) {
      const int col = 8 * chain + r, k = i / 2 * 2 * STEP_K + c + i % 2 * 8;
      b[chain][i / 2][i % 2] = packed(b_at(k, col, args.seed), b_at(k + 1, col, args.seed));
    }
  }

  float sum[CHAINS][4] = {};
  for (unsigned done = 0; done < args.repeats; ++done) {
#pragma unroll
    for (int step = 0; step < STEPS_K; ++step) {
#pragma unroll
      for (int chain = 0; chain < CHAINS; ++chain) {
        tilewright::mma_16x8x16<Element>(sum[chain], a[step], b[chain][step / 2]);
      }
    }
  }

  unsigned total = 0;
#pragma unroll
  for (int i = 0; i < 4 * CHAINS; ++i) total += weighed(sum[i / 4][i % 4], i);
  args.out[blockIdx.x * THREADS + threadIdx.x] = total;
}
