// ffma: CHAINS independent sums a thread, each the same FMA again and again, over PAIRS pairs of factors.
// With one pair both factors stay in the operand cache, and the FMA pipe sets the pace. With a pair for every chain no
// FFMA shares a register with its neighbour, and the register file's two ports set it. STEPS divides `repeats`.

extern "C" __global__ void __launch_bounds__(THREADS) ffma(const __grid_constant__ CeilingArgs args) {
  const unsigned thread = blockIdx.x * THREADS + threadIdx.x;
  const unsigned bits_a = word_at(thread, args.seed), bits_b = word_at(bits_a, args.seed);

  float a[PAIRS], b[PAIRS], sum[CHAINS];  // small integers, so that every sum is exact
#pragma unroll
  for (int i = 0; i < PAIRS; ++i) {
    a[i] = static_cast<float>(1 + (bits_a >> i & 3));
    b[i] = static_cast<float>(1 + (bits_b >> i & 3));
  }
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) sum[i] = static_cast<float>(i);

  for (unsigned done = 0; done < args.repeats; done += STEPS) {
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int i = 0; i < CHAINS; ++i) sum[i] = __fmaf_rn(a[i % PAIRS], b[i % PAIRS], sum[i]);
    }
  }

  float total = 0.0f;
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) total += sum[i];
  args.out[thread] = static_cast<unsigned>(total);
}
