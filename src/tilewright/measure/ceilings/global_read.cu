// global_read: all threads sweep `count` vectors side by side, past the L1, from the start again where they end.
// An array that fits the L2 shows the L2, one far larger the DRAM.
extern "C" __global__ void __launch_bounds__(THREADS) global_read(const __grid_constant__ CeilingArgs args) {
  const unsigned thread = blockIdx.x * THREADS + threadIdx.x;
  const unsigned step = gridDim.x * THREADS % args.count;
  unsigned at = thread % args.count, sum = 0;
  for (unsigned done = 0; done < args.repeats; done += IN_FLIGHT) {
    tilewright::Vec4<unsigned> fetched[IN_FLIGHT];
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) {
      fetched[i] = tilewright::load4_l2(args.source + 4ull * at);
      at += step;
      if (at >= args.count) at -= args.count;
    }
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i) sum += sum_of(fetched[i]);
  }
  args.out[thread] = sum;
}
