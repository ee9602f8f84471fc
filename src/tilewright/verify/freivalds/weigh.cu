// weigh: for each row of a matrix of integers the sum of its elements times the columns' weights, modulo 2^64.
// An element that is no integer below 2^31 counts as MARKER.
extern "C" __global__ void __launch_bounds__(THREADS) weigh(const __grid_constant__ FreivaldsArgs args) {
  __shared__ unsigned long long partial[THREADS];
  for (long long row = blockIdx.x; row < args.rows; row += gridDim.x) {
    unsigned long long sum = 0;
    for (long long col = threadIdx.x; col < args.cols; col += THREADS) {
      const float value = Element::load(args.matrix + row * args.row_step + col * args.col_step);
      const bool in_range = value > -2147483648.0f && value < 2147483648.0f;
      const int integer = in_range ? static_cast<int>(value) : 0;
      const bool is_integer = in_range && static_cast<float>(integer) == value;
      const auto term = is_integer ? static_cast<unsigned long long>(integer) : MARKER;
      sum += term * (args.weights ? args.weights[col] : hash_of(col, args.seed) | 1);
    }
    partial[threadIdx.x] = sum;
    __syncthreads();  // every partial sum is there before they are added up
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
      __syncthreads();  // and each round of sums before the next reads them
    }
    if (threadIdx.x == 0) args.sums[row] = partial[0];
    __syncthreads();  // the row's sum is read before the next row overwrites it
  }
}
