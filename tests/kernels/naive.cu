// D = alpha·A·B, one thread for each element of D, 16x16 threads a CTA.
#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"

extern "C" __global__ void naive(const __grid_constant__ tilewright::GemmArgs args) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= args.m || col >= args.n) return;
  float acc = 0.0f;
  for (int k = 0; k < args.k; ++k) acc = Scalar::fma(args.a[row * args.lda + k], args.b[k * args.ldb + col], acc);
  args.d[row * args.ldd + col] = args.alpha * acc;
}
