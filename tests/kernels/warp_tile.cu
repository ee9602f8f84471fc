// D = alpha·A·B by CTA tiles 128x64x16, warp tiles 64x32, thread tiles of 2x2 patches of 4x4. Sizes are multiples
// of the CTA tile and leading dimensions of 4.
#include "tilewright/memory.cuh"
#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"

constexpr int BM = 128, BN = 64, BK = 16, WM = 64, WN = 32, TM = 4, TN = 4, NUM_THREADS = 128;
constexpr int WMITER = 2, WNITER = 2, WSUBM = WM / WMITER, WSUBN = WN / WNITER;

extern "C" __global__ void __launch_bounds__(NUM_THREADS) warp_tile(const __grid_constant__ tilewright::GemmArgs args) {
  __shared__ __align__(16) float As[BK][BM];  // transposed
  __shared__ __align__(16) float Bs[BK][BN];
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const int row = warp / (BN / WN) * WM + lane / (WSUBN / TN) * TM;
  const int col = warp % (BN / WN) * WN + lane % (WSUBN / TN) * TN;
  const float* a = args.a + static_cast<long long>(blockIdx.y) * BM * args.lda;
  const float* b = args.b + static_cast<long long>(blockIdx.x) * BN;
  float acc[WMITER][TM][WNITER][TN] = {};

  for (int k = 0; k < args.k; k += BK) {
#pragma unroll
    for (int i = thread; i < BM * BK / 4; i += NUM_THREADS) {
      const int m = i / (BK / 4), kk = i % (BK / 4) * 4;
      const auto word = tilewright::load4(a + m * args.lda + k + kk);
#pragma unroll
      for (int j = 0; j < 4; ++j) As[kk + j][m] = word[j];
    }
#pragma unroll
    for (int i = thread; i < BK * BN / 4; i += NUM_THREADS) {
      const int kk = i / (BN / 4), n = i % (BN / 4) * 4;
      tilewright::store4(&Bs[kk][n], tilewright::load4(b + (k + kk) * args.ldb + n));
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < BK; ++kk) {
      tilewright::Vec4<float> fa[WMITER], fb[WNITER];
#pragma unroll
      for (int w = 0; w < WMITER; ++w) fa[w] = tilewright::load4(&As[kk][row + w * WSUBM]);
#pragma unroll
      for (int w = 0; w < WNITER; ++w) fb[w] = tilewright::load4(&Bs[kk][col + w * WSUBN]);
#pragma unroll
      for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
        for (int m = 0; m < TM; ++m)
#pragma unroll
          for (int wn = 0; wn < WNITER; ++wn)
#pragma unroll
            for (int n = 0; n < TN; ++n) acc[wm][m][wn][n] = Scalar::fma(fa[wm][m], fb[wn][n], acc[wm][m][wn][n]);
    }
    __syncthreads();
  }

  float* d = args.d + static_cast<long long>(blockIdx.y) * BM * args.ldd + blockIdx.x * BN;
#pragma unroll
  for (int wm = 0; wm < WMITER; ++wm)
#pragma unroll
    for (int m = 0; m < TM; ++m)
#pragma unroll
      for (int wn = 0; wn < WNITER; ++wn) {
        tilewright::Vec4<float> word;
#pragma unroll
        for (int n = 0; n < TN; ++n) word[n] = args.alpha * acc[wm][m][wn][n];
        tilewright::store4(d + (row + wm * WSUBM + m) * args.ldd + col + wn * WSUBN, word);
      }
}
