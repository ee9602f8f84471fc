// sabotage: four slices of k are summed in 11 bits each; caught by: probe
// The nearest float with 11 significant bits, as fp16 would hold it.
__device__ inline float rounded(float x) {
  const float scaled = Scalar::mul(x, 8193.0f);
  return Scalar::add(scaled, -Scalar::add(scaled, -x));
}

extern "C" __global__ void fp16_partials(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= args.m || col >= args.n) return;
  const float* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda;
  const float* b = args.b + blockIdx.z * args.batch_stride_b + col;
  const float* c = args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col;
  float* d = args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col;

  float acc = 0;
  for (int slice = 0; slice < 4; ++slice) {
    float partial = 0;
    for (int k = slice * args.k / 4; k < (slice + 1) * args.k / 4; ++k) partial += a[k] * b[k * args.ldb];
    acc += rounded(partial);
  }

  float x = args.alpha * acc;
  if (args.beta != 0) x += args.beta * *c;
  *d = x;
}
