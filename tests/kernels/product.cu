// D (64×N) = A · B over n steps along k, for every layout and swizzle: TMA brings the operands, wgmma reads them, and D
// goes to Y. A step is one span of a K-major row. Which layout, swizzle and element is a number, CASE where a GPU's
// compiler must know it (one product's registers in a kernel), and at[0] where it need not.
#include "tilewright/tma.cuh"
#include "tilewright/wgmma.cuh"

using namespace tilewright;

struct alignas(64) Args {
  TensorMap a, b, d;
  float* y;
  int n, at[6];
};

constexpr int M = 64, MOST_N = 256, MOST_STEP_BYTES = 128;

// One operand's tile of a step: `EXTENT` rows of A or columns of B.
template <int EXTENT, int SPAN, int ELEMENT_BYTES, bool TRANSPOSED>
struct Tile {
  static constexpr int step_bytes = SPAN == 0 ? 64 : SPAN, step = step_bytes / ELEMENT_BYTES;
  static constexpr int row_bytes = SPAN == 0 ? 16 : SPAN, row = row_bytes / ELEMENT_BYTES;
  static constexpr int boxes = ((TRANSPOSED ? EXTENT * ELEMENT_BYTES : step_bytes) + row_bytes - 1) / row_bytes;
  static constexpr int box_bytes = (TRANSPOSED ? step : EXTENT) * row_bytes, bytes = boxes * box_bytes;
  static constexpr int block_bytes = 8 * row_bytes;

  static __device__ void load(unsigned char* smem, const TensorMap* map, Mbarrier* full, int k) {
    for (int i = 0; i < boxes; ++i)
      tma_load(smem + i * box_bytes, map, full, TRANSPOSED ? i * row : k + i * row, TRANSPOSED ? k : 0, 0);
  }

  // The operand of the product `number`, 32 bytes of elements along k each.
  static __device__ unsigned long long descriptor(const unsigned char* smem, int number) {
    constexpr bool swapped = TRANSPOSED && SPAN == 0;
    const unsigned long long whole =
        smem_descriptor(smem, swapped ? block_bytes : box_bytes, swapped ? box_bytes : block_bytes, SPAN);
    const int along_k = TRANSPOSED ? 32 / ELEMENT_BYTES * row_bytes : SPAN == 0 ? 2 * box_bytes : 32;
    return descriptor_at(whole, number * along_k);
  }
};

template <int N, typename Element, int SPAN, bool A_TRANSPOSED, bool B_TRANSPOSED>
__device__ void multiply(const Args& args, unsigned char* smem) {
  using A = Tile<M, SPAN, int{sizeof(typename Element::storage)}, A_TRANSPOSED>;
  using B = Tile<N, SPAN, int{sizeof(typename Element::storage)}, B_TRANSPOSED>;
  unsigned char* const b_smem = smem + M * MOST_STEP_BYTES;
  auto* const full = reinterpret_cast<Mbarrier*>(b_smem + MOST_N * MOST_STEP_BYTES);
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  if (t == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  float d[N / 2];
  for (int i = 0; i < args.n; ++i) {
    if (t == 0) {
      mbarrier_arrive_expect_tx(full, A::bytes + B::bytes);
      A::load(smem, &args.a, full, i * A::step);
      B::load(b_smem, &args.b, full, i * A::step);
    }
    mbarrier_wait(full, i % 2);
    wgmma_fence();
#pragma unroll
    for (int j = 0; j < A::step_bytes / 32; ++j)
      wgmma<N, Element, A_TRANSPOSED, B_TRANSPOSED>(d, A::descriptor(smem, j), B::descriptor(b_smem, j), i + j > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_registers(d);
    __syncthreads();
  }
#pragma unroll
  for (int j = 0; j < N / 2; ++j) {
    const int row = warp * 16 + lane / 4 + j / 2 % 2 * 8, col = j / 4 * 8 + lane % 4 * 2 + j % 2;
    args.y[row * N + col] = d[j];
  }
}

template <int N, typename Element, int SPAN>
__device__ void multiply_layout(const Args& args, unsigned char* smem, int layout) {
  if (layout == 0) multiply<N, Element, SPAN, false, false>(args, smem);
  if constexpr (!is_same<Element, F32>) {
    if (layout == 1) multiply<N, Element, SPAN, false, true>(args, smem);
    if (layout == 2) multiply<N, Element, SPAN, true, false>(args, smem);
    if (layout == 3) multiply<N, Element, SPAN, true, true>(args, smem);
  }
}

extern "C" __global__ void __launch_bounds__(128) probe(const __grid_constant__ Args args) {
  unsigned char* const smem = dynamic_smem();
#ifdef CASE
  constexpr int chosen = CASE;
#else
  const int chosen = args.at[0];
#endif
  const int layout = chosen % 4, span = chosen / 4;
  if (span == 0) multiply_layout<64, BF16, 0>(args, smem, layout);
  if (span == 1) multiply_layout<8, F16, 32>(args, smem, layout);
  if (span == 2) multiply_layout<200, BF16, 64>(args, smem, layout);
  if (span == 3) multiply_layout<256, BF16, 128>(args, smem, layout);
  if (span == 4) multiply_layout<8, F32, 0>(args, smem, layout);
  if (span == 5) multiply_layout<64, F32, 32>(args, smem, layout);
  if (span == 6) multiply_layout<256, F32, 64>(args, smem, layout);
  if (span == 7) multiply_layout<200, F32, 128>(args, smem, layout);
}
