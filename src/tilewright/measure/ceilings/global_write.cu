// global_write: all threads sweep the array side by side and write words that follow from their index.
extern "C" __global__ void __launch_bounds__(THREADS) global_write(const __grid_constant__ CeilingArgs args) {
  const unsigned threads = gridDim.x * THREADS;
  unsigned at = blockIdx.x * THREADS + threadIdx.x;
  for (unsigned done = 0; done < args.repeats; done += IN_FLIGHT) {
#pragma unroll
    for (int i = 0; i < IN_FLIGHT; ++i, at += threads) {
      tilewright::Vec4<unsigned> four;
#pragma unroll
      for (unsigned j = 0; j < 4; ++j) four[j] = word_at(4 * at + j, args.seed);
      tilewright::store4(args.out + 4ull * at, four);
    }
  }
}
