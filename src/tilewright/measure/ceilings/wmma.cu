// wmma: CHAINS independent sums a warp, each the same four products again and again, all fragments in registers.
// Which lane holds what is not told, so that results go through shared memory and are told apart there.
#include "tilewright/wmma.cuh"

using tilewright::Major;
constexpr int STEPS_K = DEPTH / STEP_K;

extern "C" __global__ void __launch_bounds__(THREADS) wmma(const __grid_constant__ CeilingArgs args) {
  __shared__ __align__(32) Element::storage As[16 * DEPTH], Bs[16 * CHAINS * DEPTH];  // rows of A, columns of B
  __shared__ __align__(32) float patches[THREADS / 32][16 * 16];
  for (int i = threadIdx.x; i < 16 * DEPTH; i += THREADS) {
    As[i] = Element::round(a_at(i / DEPTH, i % DEPTH, args.seed));
  }
  for (int i = threadIdx.x; i < 16 * CHAINS * DEPTH; i += THREADS) {
    Bs[i] = Element::round(b_at(i % DEPTH, i / DEPTH, args.seed));
  }
  __syncthreads();  // every element is there before anyone loads

  tilewright::WmmaA<Element, Major::row> a[STEPS_K];
  tilewright::WmmaB<Element, Major::col> b[CHAINS][STEPS_K / 2];  // B is the same in two steps
#pragma unroll
  for (int step = 0; step < STEPS_K; ++step) tilewright::wmma_load(a[step], As + STEP_K * step, DEPTH);
#pragma unroll
  for (int i = 0; i < CHAINS * STEPS_K / 2; ++i) {
    const int chain = i / (STEPS_K / 2), pair = i % (STEPS_K / 2);
    tilewright::wmma_load(b[chain][pair], Bs + 16 * chain * DEPTH + 2 * STEP_K * pair, DEPTH);
  }

  tilewright::WmmaAccumulator sum[CHAINS] = {};
  for (unsigned done = 0; done < args.repeats; ++done) {
#pragma unroll
    for (int step = 0; step < STEPS_K; ++step) {
#pragma unroll
      for (int chain = 0; chain < CHAINS; ++chain) tilewright::wmma(sum[chain], a[step], b[chain][step / 2]);
    }
  }

  float* patch = patches[threadIdx.x / 32];
  unsigned total = 0;
#pragma unroll
  for (int chain = 0; chain < CHAINS; ++chain) {
    tilewright::wmma_store(patch, 16, sum[chain]);
    __syncwarp();  // the patch is whole before its lanes read it
#pragma unroll
    for (int i = 0; i < 8; ++i) total += weighed(patch[32 * i + threadIdx.x % 32], 8 * chain + i);
    __syncwarp();  // and read before the next one overwrites it
  }
  args.out[blockIdx.x * THREADS + threadIdx.x] = total;
}
