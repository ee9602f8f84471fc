// A producer thread and a warpgroup over a ring of stages that TMA fills and wgmma reads; one more operand and the
// result go through shared memory by the threads' own stores. `bug` says what is wrong with it.
#include "tilewright/barriers.cuh"
#include "tilewright/tma.cuh"
#include "tilewright/wgmma.cuh"

using namespace tilewright;

enum Bug {
  RIGHT,
  INIT_UNFENCED,
  INIT_UNORDERED,
  OPERAND_UNFENCED,
  OPERAND_FENCED_BY_ONE,
  RESULT_UNFENCED,
  RESULT_FENCED_BY_ANOTHER,
  FULL_NOT_AWAITED,
  EMPTY_NOT_AWAITED,
  RELEASED_BEFORE_WAIT,
  WAITS_ONE_BEHIND,
  RESULT_NOT_AWAITED,
  RESULT_AWAITED_BY_ONE,
  RESULT_READ_TOO_SOON,
  RESULT_STORED_BEFORE,
  EXPECTS_HALF,
};

struct Args {
  TensorMap map_a, map_b, map_d;
  float* d;
  Bug bug;
};

constexpr int TILES = 4, STAGES = 2, N = 64, CONSUMERS = 128;
constexpr int SPAN = 128, ATOM = 8 * SPAN, A_BYTES = 64 * SPAN, B_BYTES = N * SPAN, D_BYTES = 64 * N * 4;

__device__ __forceinline__ void load_tile(unsigned char* a, unsigned char* b, Mbarrier* full, const Args& args,
                                          int tile) {
  mbarrier_arrive_expect_tx(full, args.bug == EXPECTS_HALF ? A_BYTES : A_BYTES + B_BYTES);
  tma_load(a, &args.map_a, full, 64 * tile, 0, 0);
  tma_load(b, &args.map_b, full, 64 * tile, 0, 0);
}

extern "C" __global__ void __launch_bounds__(160) async_ring(const __grid_constant__ Args args) {
  const int t = threadIdx.x, bug = args.bug;
  unsigned char* a = dynamic_smem();
  unsigned char* b = a + STAGES * A_BYTES;
  unsigned char* operand = b + STAGES * B_BYTES;
  unsigned char* result = operand + B_BYTES;
  auto* full = reinterpret_cast<Mbarrier*>(result + D_BYTES);
  auto* empty = full + STAGES;

  if (t == CONSUMERS) {
    for (int stage = 0; stage < STAGES; ++stage) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], 1);
    }
    if (bug != INIT_UNFENCED) fence_mbarrier_init();
  }
  if (bug != INIT_UNORDERED) __syncthreads();

  if (t >= CONSUMERS) {
    for (int tile = 0; t == CONSUMERS && tile < TILES; ++tile) {
      const int stage = tile % STAGES, round = tile / STAGES;
      if (round > 0 && bug != EMPTY_NOT_AWAITED) mbarrier_wait(&empty[stage], (round - 1) & 1);
      load_tile(a + stage * A_BYTES, b + stage * B_BYTES, &full[stage], args, tile);
    }
    return;
  }

  for (int i = t; i < B_BYTES / 4; i += CONSUMERS) reinterpret_cast<unsigned*>(operand)[i] = 0;
  if (bug != OPERAND_UNFENCED && bug != OPERAND_FENCED_BY_ONE) fence_proxy_async();
  barrier_sync(1, CONSUMERS);
  if (bug == OPERAND_FENCED_BY_ONE && t == 0) fence_proxy_async();

  float d[N / 2] = {};
  for (int tile = 0; tile < TILES; ++tile) {
    const int stage = tile % STAGES, round = tile / STAGES;
    const auto desc_a = smem_descriptor(a + stage * A_BYTES, 0, ATOM, SPAN);
    const auto desc_b = smem_descriptor(b + stage * B_BYTES, 0, ATOM, SPAN);
    if (bug != FULL_NOT_AWAITED) mbarrier_wait(&full[stage], round & 1);
    wgmma_fence();
    for (int k = 0; k < SPAN; k += 32)
      wgmma<N, BF16, false, false>(d, descriptor_at(desc_a, k), descriptor_at(desc_b, k), true);
    if (tile == 0) wgmma<N, BF16, false, false>(d, desc_a, smem_descriptor(operand, 0, ATOM, SPAN), true);
    wgmma_commit();
    if (bug == RELEASED_BEFORE_WAIT && t == 0) mbarrier_arrive(&empty[stage]);
    if (bug == WAITS_ONE_BEHIND)
      wgmma_wait<1>();
    else
      wgmma_wait<0>();
    if (bug != RELEASED_BEFORE_WAIT && t == 0) mbarrier_arrive(&empty[stage]);
  }
  wgmma_wait<0>();

  if (bug == RESULT_STORED_BEFORE && t == 0) args.d[0] = 0;
  for (int part = 0; part < 2; ++part) {
    if (part > 0) {
      if (t == 0 && bug != RESULT_NOT_AWAITED) tma_wait_read<0>();
      if (bug != RESULT_AWAITED_BY_ONE) barrier_sync(1, CONSUMERS);
    }
    for (int i = 0; i < N / 2; ++i) reinterpret_cast<float*>(result)[t * N / 2 + i] = d[i];
    if (bug != RESULT_UNFENCED && bug != RESULT_FENCED_BY_ANOTHER) fence_proxy_async();
    barrier_sync(1, CONSUMERS);
    if (bug == RESULT_FENCED_BY_ANOTHER && t == 1) fence_proxy_async();
    if (t == 0) {
      tma_store(&args.map_d, result, 0, 64 * part, 0);
      tma_commit();
    }
  }
  if (t != 0) return;
  if (bug == RESULT_READ_TOO_SOON)
    tma_wait_read<0>();
  else
    tma_wait<0>();
  if (args.d[0] != 0) args.d[1] = 0;
}
