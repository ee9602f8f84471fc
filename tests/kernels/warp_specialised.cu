// D (128×64, BF16) = A · Bᵀ: a producer warpgroup and two consumers over a ring of two stages, registers moved from the
// one to the others, results through swizzled shared memory. Bits of `at[0]` leave out what keeps the stages apart.
#include "tilewright/barriers.cuh"
#include "tilewright/matrix.cuh"
#include "tilewright/registers.cuh"
#include "tilewright/tma.cuh"
#include "tilewright/wgmma.cuh"

using namespace tilewright;

struct alignas(64) Args {
  TensorMap a, b, d;
  float* y;
  int n, at[6];
};

constexpr int N = 64, ROW_BYTES = 128, A_BYTES = 128 * ROW_BYTES, STAGE_BYTES = A_BYTES + N * ROW_BYTES, STAGES = 2;
constexpr int NO_FULL_WAIT = 1, NO_EMPTY_WAIT = 2, NO_PRODUCT_WAIT = 4, NO_READ_WAIT = 8;

__device__ void produce(const Args& args, unsigned char* smem, Mbarrier* full, Mbarrier* empty) {
  for (int i = 0; i < args.n; ++i) {
    const int stage = i % STAGES;
    unsigned char* const a = smem + stage * STAGE_BYTES;
    if (i >= STAGES && !(args.at[0] & NO_EMPTY_WAIT)) mbarrier_wait(empty + stage, (i / STAGES - 1) % 2);
    mbarrier_arrive_expect_tx(full + stage, STAGE_BYTES);
    tma_load(a, &args.a, full + stage, i * 64, 0, 0);
    tma_load(a + A_BYTES, &args.b, full + stage, i * 64, 0, 0);
  }
}

__device__ void store(const Args& args, unsigned char* out, int consumer, const float (&d)[N / 2]) {
  const int t = threadIdx.x % 128, lane = t % 32, row = t / 32 * 16 + lane % 16;
  for (int j = 0; j < N / 16; ++j) {
    unsigned pairs[4];
    for (int i = 0; i < 4; ++i)
      pairs[i] = BF16::round(d[8 * j + 2 * i]).bits | unsigned{BF16::round(d[8 * j + 2 * i + 1]).bits} << 16;
    stmatrix<4>(out + row * ROW_BYTES + ((2 * j + lane / 16) ^ (row % 8)) * 16, pairs);
  }
  fence_proxy_async();
  barrier_sync(1 + consumer, 128);
  if (t != 0) return;
  tma_store(&args.d, out, 0, consumer * 64, 0);
  tma_commit();
  if (!(args.at[0] & NO_READ_WAIT)) tma_wait_read<0>();
}

__device__ void consume(const Args& args, unsigned char* smem, Mbarrier* full, Mbarrier* empty, int consumer) {
  float d[N / 2];
  for (int i = 0; i < args.n; ++i) {
    const int stage = i % STAGES;
    const unsigned char* const a = smem + stage * STAGE_BYTES + consumer * (A_BYTES / 2);
    const unsigned char* const b = smem + stage * STAGE_BYTES + A_BYTES;
    if (!(args.at[0] & NO_FULL_WAIT)) mbarrier_wait(full + stage, i / STAGES % 2);
    wgmma_fence();
#pragma unroll
    for (int j = 0; j < ROW_BYTES / 32; ++j)
      wgmma<N, BF16, false, false>(d, smem_descriptor(a + 32 * j, 0, 1024, 128),
                                   smem_descriptor(b + 32 * j, 0, 1024, 128), i + j > 0);
    wgmma_commit();
    if (!(args.at[0] & NO_PRODUCT_WAIT)) wgmma_wait<1>();
    if (i > 0 && threadIdx.x % 128 == 0) mbarrier_arrive(empty + (i - 1) % STAGES);
  }
  wgmma_wait<0>();
  wgmma_registers(d);
  store(args, smem + STAGES * STAGE_BYTES + consumer * (N * ROW_BYTES), consumer, d);
}

extern "C" __global__ void __launch_bounds__(384, 1) probe(const __grid_constant__ Args args) {
  unsigned char* const smem = dynamic_smem();
  auto* const full = reinterpret_cast<Mbarrier*>(smem + STAGES * STAGE_BYTES + 2 * N * ROW_BYTES);
  Mbarrier* const empty = full + STAGES;
  const int warpgroup = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      mbarrier_init(full + i, 1);
      mbarrier_init(empty + i, 2);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (warpgroup == 0) {
    release_registers<24>();
    if (threadIdx.x == 0) produce(args, smem, full, empty);
  } else {
    acquire_registers<240>();
    consume(args, smem, full, empty, warpgroup - 1);
  }
}
