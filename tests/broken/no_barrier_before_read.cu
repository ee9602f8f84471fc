// sabotage: tiles are read before all of them is written; caught by: integer
extern "C" __global__ void no_barrier_before_read(const __grid_constant__ GemmArgs args) {
  __shared__ float As[16][16];  // rows × k
  __shared__ float Bs[16][16];  // k × columns
  const int ty = threadIdx.y, tx = threadIdx.x;
  const int row = blockIdx.y * 16 + ty;
  const int col = blockIdx.x * 16 + tx;
  const float* a = args.a + blockIdx.z * args.batch_stride_a;
  const float* b = args.b + blockIdx.z * args.batch_stride_b;
  const float* c = args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col;
  float* d = args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col;

  float acc = 0;
  for (int k0 = 0; k0 < args.k; k0 += 16) {
    As[ty][tx] = row < args.m && k0 + tx < args.k ? a[row * args.lda + k0 + tx] : 0;
    Bs[ty][tx] = k0 + ty < args.k && col < args.n ? b[(k0 + ty) * args.ldb + col] : 0;
    for (int k = 0; k < 16; ++k) acc += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }

  if (row < args.m && col < args.n) *d = args.beta != 0 ? args.alpha * acc + args.beta * *c : args.alpha * acc;
}
