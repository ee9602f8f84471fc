// sabotage: NaN products are skipped; caught by: special
extern "C" __global__ void nan_is_zero(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * 16 + threadIdx.y;
  const int col = blockIdx.x * 16 + threadIdx.x;
  if (row >= args.m || col >= args.n) return;
  const float* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda;
  const float* b = args.b + blockIdx.z * args.batch_stride_b + col;
  const float* c = args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col;
  float* d = args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col;

  float acc = 0;
  for (int k = 0; k < args.k; ++k) {
    const float product = a[k] * b[k * args.ldb];
    if (product == product) acc += product;
  }

  float x = args.alpha * acc;
  if (args.beta != 0) x += args.beta * *c;
  *d = x;
}
