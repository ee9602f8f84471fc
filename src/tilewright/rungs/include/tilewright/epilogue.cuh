// The last step of every kernel: D = epilogue(alpha * acc + beta * C), rounded once.
// By the BLAS rule C is never read when beta is zero, so NaN there stays there. BETA_MODE is chosen from the
// problem, not tuned: rungs then differ by their idea and not by their handling of C.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

enum BetaMode {
  BETA_ZERO,         // C takes no part
  BETA_GENERAL,      // C is read
  BETA_RUNTIME,      // decided by the value of beta
  BETA_ALWAYS_READ,  // reads C whatever beta is: for experiments only
};

template <int MODE>
__device__ __forceinline__ bool reads_c(const GemmArgs& args) {
  if (MODE == BETA_RUNTIME) return args.beta != 0;
  return MODE != BETA_ZERO;
}

__device__ __forceinline__ Scalar::accumulate scale_and_add(const GemmArgs& args, Scalar::accumulate acc,
                                                            Scalar::accumulate c) {
  return Scalar::fma(args.beta, c, Scalar::mul(args.alpha, acc));
}

// COUNT neighbouring results of this CTA's batch entry, not yet rounded. Where there are several, col, the leading
// dimensions and the bases are multiples of COUNT elements. Not IS_SCALED, alpha is known to be 1.
template <int MODE, int COUNT, bool IS_SCALED = true>
__device__ __forceinline__ Vec<Scalar::accumulate, COUNT> finished(const GemmArgs& args, int row, int col,
                                                                   const Scalar::accumulate* acc) {
  Vec<Output::storage, COUNT> c{};
  if (reads_c<MODE>(args)) c = load_word<COUNT>(args.c + blockIdx.z * args.batch_stride_c + row * args.ldc + col);
  Vec<Scalar::accumulate, COUNT> out;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    Scalar::accumulate x = acc[i];
    if constexpr (IS_SCALED) x = Scalar::mul(args.alpha, x);
    if (reads_c<MODE>(args)) x = scale_and_add(args, acc[i], Output::widen(c[i]));
    out[i] = Epilogue::apply(x, col + i, args);
  }
  return out;
}

template <int MODE, int COUNT>
__device__ __forceinline__ void write_results(const GemmArgs& args, int row, int col, const Scalar::accumulate* acc) {
  const auto x = finished<MODE, COUNT>(args, row, col, acc);
  Vec<Output::storage, COUNT> out;
#pragma unroll
  for (int i = 0; i < COUNT; ++i) out[i] = Output::round(x[i]);
  store_word(args.d + blockIdx.z * args.batch_stride_d + row * args.ldd + col, out);
}

template <int MODE>
__device__ __forceinline__ void write_result(const GemmArgs& args, int row, int col, Scalar::accumulate acc) {
  write_results<MODE, 1>(args, row, col, &acc);
}

template <int MODE>
__device__ __forceinline__ void write_results4(const GemmArgs& args, int row, int col, const Scalar::accumulate* acc) {
  write_results<MODE, 4>(args, row, col, acc);
}

}  // namespace tilewright
