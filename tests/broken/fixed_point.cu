// sabotage: operands are rounded to multiples of 1/1024; caught by: bound
// The nearest multiple of 1/1024, for |x| up to 4096.
__device__ inline float rounded(float x) { return Scalar::add(Scalar::add(x, 12288.0f), -12288.0f); }

extern "C" __global__ void fixed_point(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= args.m || col >= args.n) return;
  const float* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda;
  const float* b = args.b + blockIdx.z * args.batch_stride_b + col;
  const float* c = args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col;
  float* d = args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col;

  float acc = 0;
  for (int k = 0; k < args.k; ++k) acc += rounded(a[k]) * rounded(b[k * args.ldb]);

  float x = args.alpha * acc;
  if (args.beta != 0) x += args.beta * *c;
  *d = x;
}
