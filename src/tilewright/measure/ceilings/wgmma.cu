// wgmma: every warpgroup adds up the same four products of the widest instruction again and again, both operands read
// from shared memory each time. One group of products is always waiting while another runs.
#include "tilewright/proxy.cuh"
#include "tilewright/wgmma.cuh"

constexpr int ROWS = 64, COLS = 256, SPAN_BYTES = 128, CHUNK_BYTES = 16, STEP_BYTES = 32;
static_assert(DEPTH * sizeof(Element::storage) == SPAN_BYTES, "a row along k is as wide as the swizzle's span");

// Where element k of a row lies: the chunks of eight rows are exchanged, so that they lie in different banks.
__device__ __forceinline__ Element::storage& swizzled(unsigned char* tile, int row, int k) {
  const int at = k * sizeof(Element::storage), chunk = at / CHUNK_BYTES ^ row % 8;
  return *reinterpret_cast<Element::storage*>(tile + row * SPAN_BYTES + chunk * CHUNK_BYTES + at % CHUNK_BYTES);
}

extern "C" __global__ void __launch_bounds__(THREADS) wgmma(const __grid_constant__ CeilingArgs args) {
  unsigned char* As = tilewright::dynamic_smem();  // rows of A
  unsigned char* Bs = As + ROWS * SPAN_BYTES;      // columns of B
  for (int i = threadIdx.x; i < ROWS * DEPTH; i += THREADS) {
    swizzled(As, i / DEPTH, i % DEPTH) = Element::round(a_at(i / DEPTH, i % DEPTH, args.seed));
  }
  for (int i = threadIdx.x; i < COLS * DEPTH; i += THREADS) {
    swizzled(Bs, i / DEPTH, i % DEPTH) = Element::round(b_at(i % DEPTH, i / DEPTH, args.seed));
  }
  tilewright::fence_proxy_async();  // tensor cores see what this thread has stored
  __syncthreads();                  // and what the others have

  const auto a = tilewright::smem_descriptor(As, CHUNK_BYTES, 8 * SPAN_BYTES, SPAN_BYTES);
  const auto b = tilewright::smem_descriptor(Bs, CHUNK_BYTES, 8 * SPAN_BYTES, SPAN_BYTES);
  float sum[COLS / 2] = {};
  for (unsigned done = 0; done < args.repeats; ++done) {
    tilewright::wgmma_fence();
#pragma unroll
    for (int at = 0; at < SPAN_BYTES; at += STEP_BYTES) {
      tilewright::wgmma<COLS, Element, false, false>(sum, tilewright::descriptor_at(a, at),
                                                     tilewright::descriptor_at(b, at), true);
    }
    tilewright::wgmma_commit();
    tilewright::wgmma_wait<1>();
  }
  tilewright::wgmma_wait<0>();
  tilewright::wgmma_registers(sum);

  unsigned total = 0;
#pragma unroll
  for (int i = 0; i < COLS / 2; ++i) total += weighed(sum[i], i);
  args.out[blockIdx.x * THREADS + threadIdx.x] = total;
}
