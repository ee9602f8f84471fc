// D = alpha·A·B by 16x16 tiles in shared memory, any size.
#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"

constexpr int TILE = 16;

extern "C" __global__ void shared_tile(const __grid_constant__ tilewright::GemmArgs args) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * TILE + ty;
  const int col = blockIdx.x * TILE + tx;
  float acc = 0.0f;
  for (int k = 0; k < args.k; k += TILE) {
    As[ty][tx] = row < args.m && k + tx < args.k ? args.a[row * args.lda + k + tx] : 0.0f;
    Bs[ty][tx] = k + ty < args.k && col < args.n ? args.b[(k + ty) * args.ldb + col] : 0.0f;
    __syncthreads();  // the tile is complete
    for (int i = 0; i < TILE; ++i) acc = Scalar::fma(As[ty][i], Bs[i][tx], acc);
    __syncthreads();  // nobody reads it any more
  }
  if (row < args.m && col < args.n) args.d[row * args.ldd + col] = args.alpha * acc;
}
