// global_copy: all threads sweep both arrays side by side, several loads in flight before the first store.
extern "C" __global__ void __launch_bounds__(THREADS) global_copy(const __grid_constant__ CeilingArgs args) {
  const unsigned threads = gridDim.x * THREADS;
  unsigned at = blockIdx.x * THREADS + threadIdx.x;
  for (unsigned done = 0; done < args.repeats; done += IN_FLIGHT, at += IN_FLIGHT * threads) {
    tilewright::Vec4<unsigned> fetched[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) fetched[i] = tilewright::load4_l2(args.source + 4ull * (at + i * threads));
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) tilewright::store4(args.out + 4ull * (at + i * threads), fetched[i]);
  }
}
