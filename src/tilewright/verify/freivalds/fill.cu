// fill: every element of a matrix from the hash of its place.
// Integers are from low to high in magnitude, of either sign; other numbers lie evenly between low and high, or are
// low itself where that is NaN.
extern "C" __global__ void __launch_bounds__(THREADS) fill(const __grid_constant__ FreivaldsArgs args) {
  const long long count = args.rows * args.cols, step = 1ll * gridDim.x * THREADS;
  for (long long at = 1ll * blockIdx.x * THREADS + threadIdx.x; at < count; at += step) {
    const long long row = at / args.cols, col = at % args.cols;
    const unsigned long long hash = hash_of(at, args.seed);
    const unsigned drawn = static_cast<unsigned>(hash), other = static_cast<unsigned>(hash >> 32);
    float value = args.low + (args.high - args.low) * (static_cast<float>(drawn >> 8) * (1.0f / (1 << 24)));
    if (args.whole) {
      const unsigned span = static_cast<unsigned>(args.high - args.low) + 1;
      const float magnitude = args.low + static_cast<float>((drawn >> 1) % span);
      const bool at_edge = col < args.edge || col >= args.cols - args.edge;
      value = at_edge || other <= args.kept ? (drawn & 1 ? magnitude : -magnitude) : 0.0f;
    }
    args.matrix[row * args.row_step + col * args.col_step] = Element::round(value);
  }
}
