// k11_double_buffer: two stages; the next tile travels while this one is multiplied.
// builds on:      k10_padded
// what changes:   B is copied asynchronously, past the registers; A is loaded early into registers and stored late,
//                 since only registers can transpose it
// should help:    global latency hides behind a tile's FMAs, and one barrier a tile does for two
// costs:          twice the shared memory, and registers that hold the next A during the whole tile
// preconditions:  sizes in whole tiles; bases and leading dimensions in multiples of 16 bytes
#include "tilewright/epilogue.cuh"
#include "tilewright/fragment.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

constexpr int A_WIDTH = A_STRIDE % 4 == 0 ? 4 : 2;  // elements of As in one access, by its rows' alignment
constexpr int A_PASSES = BM / ROW_STRIDE_A;         // 16-byte parts of a tile of A that one thread moves

struct Stage {
  alignas(16) Element As[BK][A_STRIDE];  // transposed: k × rows, padded
  alignas(16) Element Bs[BK][BN];        // k × columns
};

// This thread's part of a tile of A, from `a` on, to registers.
__device__ __forceinline__ void load_a(Vec4<Element> (&in_flight)[A_PASSES], const Element* a, int lda) {
#pragma unroll
  for (int i = 0; i < A_PASSES; ++i) in_flight[i] = load4(a + i * ROW_STRIDE_A * lda);
}

// And from there, transposed → As[k][row].
__device__ __forceinline__ void store_a(Element (&As)[BK][A_STRIDE], const Vec4<Element> (&in_flight)[A_PASSES]) {
  const int row = threadIdx.x / (BK / 4);
  const int k = threadIdx.x % (BK / 4) * 4;
#pragma unroll
  for (int i = 0; i < A_PASSES; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) As[k + j][row + i * ROW_STRIDE_A] = in_flight[i][j];
  }
}

// This thread's part of a tile of B, from `b` on → Bs[k][col], there after the wait.
__device__ __forceinline__ void copy_b(Element (&Bs)[BK][BN], const Element* b, int ldb) {
  const int k = threadIdx.x / (BN / 4);
  const int col = threadIdx.x % (BN / 4) * 4;
#pragma unroll
  for (int r = 0; r < BK; r += ROW_STRIDE_B) cp_async<4 * sizeof(Element)>(&Bs[k + r][col], b + r * ldb);
  cp_async_commit();
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS)
    k11_double_buffer(const __grid_constant__ GemmArgs args) {
  Stage* stages = reinterpret_cast<Stage*>(dynamic_smem());  // two

  // Which warp tile, and which patch of each of its sub-tiles.
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
  const int lane_row = lane / (WSUBN / TN) * TM, lane_col = lane % (WSUBN / TN) * TN;
  const int my_row = warp_row + lane_row, my_col = warp_col + lane_col;

  const int cta_row = blockIdx.y * BM, cta_col = blockIdx.x * BN;
  const auto* a = args.a + blockIdx.z * args.batch_stride_a + cta_row * args.lda;
  const auto* b = args.b + blockIdx.z * args.batch_stride_b + cta_col;
  const int lda = static_cast<int>(args.lda), ldb = static_cast<int>(args.ldb);
  a += threadIdx.x / (BK / 4) * lda + threadIdx.x % (BK / 4) * 4;  // the first element of A that this thread copies
  b += threadIdx.x / (BN / 4) * ldb + threadIdx.x % (BN / 4) * 4;  // and of B

  Vec4<Element> next_a[A_PASSES];
  if (args.k > 0) {
    copy_b(stages[0].Bs, b, ldb);
    load_a(next_a, a, lda);
    store_a(stages[0].As, next_a);
    cp_async_wait<0>();
  }
  __syncthreads();  // the first stage is whole before anyone reads it

  Acc acc[WMITER * TM][WNITER * TN] = {};

  int current = 0;
  for (int k0 = 0; k0 < args.k; k0 += BK) {
    const Stage& stage = stages[current];
    Stage& next = stages[current ^ 1];
    const bool more = k0 + BK < args.k;
    if (more) {
      a += BK;
      b += BK * args.ldb;
      copy_b(next.Bs, b, ldb);
      load_a(next_a, a, lda);
    }

#pragma unroll
    for (int k = 0; k < BK; ++k) {
      Acc frag_a[WMITER * TM], frag_b[WNITER * TN];
#pragma unroll
      for (int i = 0; i < WMITER; ++i) load_fragment<TM, A_WIDTH>(frag_a + i * TM, &stage.As[k][my_row + i * WSUBM]);
#pragma unroll
      for (int j = 0; j < WNITER; ++j) load_fragment<TN>(frag_b + j * TN, &stage.Bs[k][my_col + j * WSUBN]);
      outer_product(acc, frag_a, frag_b);
    }

    if (more) {
      store_a(next.As, next_a);
      cp_async_wait<0>();
    }
    __syncthreads();  // the next stage is whole, and everyone has read this one before it is overwritten
    current ^= 1;
  }

#pragma unroll
  for (int i = 0; i < WMITER * TM; ++i) {
    const int row = cta_row + my_row + i / TM * WSUBM + i % TM;
#pragma unroll
    for (int j = 0; j < WNITER * TN; j += 4) {
      const int col = cta_col + my_col + j / TN * WSUBN + j % TN;
      write_results4<BETA_MODE>(args, row, col, &acc[i][j]);
    }
  }
}
