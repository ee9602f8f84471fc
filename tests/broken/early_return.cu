// sabotage: threads without a result return before the barrier; caught by: Deadlock
extern "C" __global__ void early_return(const __grid_constant__ GemmArgs args) {
  __shared__ float As[16][16];  // rows × k
  __shared__ float Bs[16][16];  // k × columns
  const int ty = threadIdx.y, tx = threadIdx.x;
  const int row = blockIdx.y * 16 + ty;
  const int col = blockIdx.x * 16 + tx;
  const float* a = args.a + blockIdx.z * args.batch_stride_a;
  const float* b = args.b + blockIdx.z * args.batch_stride_b;
  const float* c = args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col;
  float* d = args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col;

  if (row >= args.m || col >= args.n) return;
  float acc = 0;
  for (int k0 = 0; k0 < args.k; k0 += 16) {
    As[ty][tx] = row < args.m && k0 + tx < args.k ? a[row * args.lda + k0 + tx] : 0;
    Bs[ty][tx] = k0 + ty < args.k && col < args.n ? b[(k0 + ty) * args.ldb + col] : 0;
    __syncthreads();  // both tiles are written before any thread reads them
    for (int k = 0; k < 16; ++k) acc += As[ty][k] * Bs[k][tx];
    __syncthreads();  // and read by all before the next ones overwrite them
  }

  if (row < args.m && col < args.n) *d = args.beta != 0 ? args.alpha * acc + args.beta * *c : args.alpha * acc;
}
