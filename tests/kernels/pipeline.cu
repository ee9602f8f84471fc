// D = alpha·A·B by 32x32 tiles through STAGES buffers of dynamic shared memory, filled by cp.async with zeros beyond
// the matrices. Any size; 16x16 threads, each with a 2x2 thread tile.
#include "tilewright/memory.cuh"
#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"

constexpr int TILE = 32, STAGES = 3, SIDE = 16;

struct Stage {
  float a[TILE][TILE], b[TILE][TILE];
};

__device__ void fill(Stage& stage, const tilewright::GemmArgs& args, int k0) {
  for (int y = threadIdx.y; y < TILE; y += SIDE) {
    for (int x = threadIdx.x; x < TILE; x += SIDE) {
      const int m = blockIdx.y * TILE + y, n = blockIdx.x * TILE + x;
      tilewright::cp_async_zfill<4>(&stage.a[y][x], args.a + m * args.lda + k0 + x,
                                    m < args.m && k0 + x < args.k ? 4 : 0);
      tilewright::cp_async_zfill<4>(&stage.b[y][x], args.b + (k0 + y) * args.ldb + n,
                                    k0 + y < args.k && n < args.n ? 4 : 0);
    }
  }
}

extern "C" __global__ void pipeline(const __grid_constant__ tilewright::GemmArgs args) {
  Stage* stages = reinterpret_cast<Stage*>(tilewright::dynamic_smem());
  const int tx = threadIdx.x, ty = threadIdx.y;
  float acc[2][2] = {};
  for (int s = 0; s < STAGES - 1; ++s) {
    fill(stages[s], args, s * TILE);
    tilewright::cp_async_commit();
  }
  const int tiles = (args.k + TILE - 1) / TILE;
  for (int t = 0; t < tiles; ++t) {
    tilewright::cp_async_wait<STAGES - 2>();
    __syncthreads();  // tile t is there for all, and nobody reads tile t-1 any more
    fill(stages[(t + STAGES - 1) % STAGES], args, (t + STAGES - 1) * TILE);
    tilewright::cp_async_commit();
    const Stage& stage = stages[t % STAGES];
    for (int i = 0; i < TILE; ++i)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x) acc[y][x] = Scalar::fma(stage.a[ty * 2 + y][i], stage.b[i][tx * 2 + x], acc[y][x]);
  }
  for (int y = 0; y < 2; ++y) {
    for (int x = 0; x < 2; ++x) {
      const int m = blockIdx.y * TILE + ty * 2 + y, n = blockIdx.x * TILE + tx * 2 + x;
      if (m < args.m && n < args.n) args.d[m * args.ldd + n] = args.alpha * acc[y][x];
    }
  }
}
