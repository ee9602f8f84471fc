// A warpgroup's product on Hopper's tensor cores: D (64×N) += A (64×K) · B (K×N), where K is 32 bytes of elements and
// both operands are read from shared memory, beside the threads. Each function has two bodies, CUDA and emulator.
// sm_90a.
//
// The 128 threads of four neighbouring warps call each function together. A product is asynchronous: its registers are
// the tensor cores' from wgmma until a wgmma_wait that covers the group in which it was committed, and so are its
// operands. Warp w of the four holds rows 16·w to 16·w + 15, with r = lane / 4 and c = 2 · (lane % 4):
//   d[4·j + 0..3]   D[r][8·j + c], D[r][8·j + c + 1], D[r + 8][8·j + c], D[r + 8][8·j + c + 1]
#pragma once

#include "tilewright/memory.cuh"
#include "tilewright/scalar.cuh"

namespace tilewright {

template <typename X, typename Y>
constexpr bool is_same = false;
template <typename X>
constexpr bool is_same<X, X> = true;

// Where an operand lies, in 64 bits. `start` is its first element, `span_bytes` the swizzle's span: 128, 64, 32, or 0
// for none, which counts as 16 below. In memory are blocks of eight rows of one span each. Where rows run along k (A
// stored m×k, B stored n×k) the next eight rows follow after `stride_bytes`, and `leading_bytes` matters only without a
// swizzle: from 16 bytes of k to the next. Where rows run across k (transposed) they follow after `stride_bytes` along
// k, and after `leading_bytes` the next span across it; without a swizzle these two change places.
__device__ __forceinline__ unsigned long long smem_descriptor(const void* start, int leading_bytes, int stride_bytes,
                                                              int span_bytes) {
  const auto sixteens = [](unsigned bytes) { return static_cast<unsigned long long>((bytes & 0x3FFFF) >> 4); };
  const unsigned long long swizzle = span_bytes == 128 ? 1 : span_bytes == 64 ? 2 : span_bytes == 32 ? 3 : 0;
  return sixteens(smem_address(start)) | sixteens(leading_bytes) << 16 | sixteens(stride_bytes) << 32 | swizzle << 62;
}

// The same operand `bytes` further on: along k within a swizzled row, or by whole blocks.
__device__ __forceinline__ unsigned long long descriptor_at(unsigned long long descriptor, int bytes) {
  return descriptor + static_cast<unsigned long long>(bytes >> 4);
}

#if TILEWRIGHT_EMULATED

__forceinline__ void wgmma_fence(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_wgmma_fence(file, line);
}
__forceinline__ void wgmma_commit(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_wgmma_commit(file, line);
}
template <int pending_groups>
__forceinline__ void wgmma_wait(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_wgmma_wait(pending_groups, file, line);
}

template <int count>
__forceinline__ void wgmma_registers(float (&)[count]) {}

template <int N, typename Element, bool A_TRANSPOSED, bool B_TRANSPOSED>
__forceinline__ void wgmma(float (&d)[N / 2], unsigned long long a, unsigned long long b, bool accumulates,
                           const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma's N is a multiple of 8 up to 256");
  constexpr int element = is_same<Element, BF16> ? 0 : is_same<Element, F16> ? 1 : 2;
  static_assert(element != 2 || (!A_TRANSPOSED && !B_TRANSPOSED), "wgmma transposes 16-bit elements only");
  tilewright_wgmma({d, a, b, N, element, A_TRANSPOSED, B_TRANSPOSED, accumulates}, file, line);
}

#elif __CUDA_ARCH__ >= 900

}  // namespace tilewright
#include "tilewright/wgmma_shapes.cuh"
namespace tilewright {

// Registers that threads have written are seen by the products that follow; before the first one, too.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

// Closes a group with the products since the last one.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }

// Returns when at most `pending_groups` of the newest groups are unfinished.
template <int pending_groups>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(pending_groups) : "memory");
}

// Keeps the compiler from moving uses of the accumulators over what stands before: behind the wait that frees them.
template <int count>
__device__ __forceinline__ void wgmma_registers(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i]) : : "memory");
}

// `accumulates` false: D is overwritten, and what it held does not matter.
template <int N, typename Element, bool A_TRANSPOSED, bool B_TRANSPOSED>
__device__ __forceinline__ void wgmma(float (&d)[N / 2], unsigned long long a, unsigned long long b, bool accumulates) {
  static_assert(N % 8 == 0 && N >= 8 && N <= 256, "wgmma's N is a multiple of 8 up to 256");
  WgmmaShape<N>::template multiply<Element, A_TRANSPOSED, B_TRANSPOSED>(d, a, b, accumulates);
}

#endif

}  // namespace tilewright
