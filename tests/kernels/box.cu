// One box from A through shared memory to D; shared memory as it lies then goes to Y, a word a thread.
#include "tilewright/tma.cuh"

using namespace tilewright;

struct alignas(64) Args {
  TensorMap a, b, d;
  unsigned* y;
  int n, at[6];
};

extern "C" __global__ void __launch_bounds__(64) probe(const __grid_constant__ Args args) {
  constexpr int most_box_bytes = 16384;
  unsigned char* const smem = dynamic_smem();
  auto* const full = reinterpret_cast<Mbarrier*>(smem + most_box_bytes);
  const int t = threadIdx.x;
  if (t == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, args.n);
    tma_load(smem, &args.a, full, args.at[0], args.at[1], args.at[2]);
  }
  __syncthreads();
  mbarrier_wait(full, 0);
  for (int i = t; i < args.n / 4; i += 64) args.y[i] = reinterpret_cast<const unsigned*>(smem)[i];
  if (t == 0) {
    tma_store(&args.d, smem, args.at[3], args.at[4], args.at[5]);
    tma_commit();
    tma_wait<0>();
  }
}
