// shared_read: every warp reads 512 neighbouring bytes of shared memory a load, 16 bytes a lane: no bank conflicts.
// The start moves by a warp's width each round, so that no load is the last round's again.
constexpr unsigned SPAN = VECTORS / LOADS;

extern "C" __global__ void __launch_bounds__(THREADS) shared_read(const __grid_constant__ CeilingArgs args) {
  __shared__ __align__(16) unsigned words[VECTORS * 4];
  for (int i = threadIdx.x; i < VECTORS * 4; i += THREADS) words[i] = word_at(i, args.seed);
  __syncthreads();  // every word is there before anyone reads

  unsigned sum = 0;
  for (unsigned round = 0; round < args.repeats; ++round) {
    const unsigned* from = words + (threadIdx.x + 32 * round) % SPAN * 4;
#pragma unroll
    for (int i = 0; i < LOADS; ++i) sum += sum_of(tilewright::load4(from + i * SPAN * 4));
  }
  args.out[blockIdx.x * THREADS + threadIdx.x] = sum;
}
