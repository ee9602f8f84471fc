// One tensor-core product of a warp: D (16×8) += A (16×16) · B (16×8), 16-bit elements, float32 accumulators.
// Two bodies, CUDA and emulator.
//
// A lane holds, with r = lane / 4 and c = 2 · (lane % 4), two elements a register, the lower index in the lower half:
//   a[0..3]  A[r][c], A[r + 8][c], A[r][c + 8], A[r + 8][c + 8]     each with the next column
//   b[0..1]  B[c][r], B[c + 8][r]                                   each with the next row
//   d[0..3]  D[r][c], D[r][c + 1], D[r + 8][c], D[r + 8][c + 1]
#pragma once

#include "tilewright/scalar.cuh"
#include "tilewright/warp.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

namespace emulator {

struct MmaLane {
  const unsigned *a, *b;
  float* d;
  const char* file;
  int line;
};

// A lane that has ended is not waited for, but no tensor core multiplies without it.
template <typename Lane>
inline void require_whole_warp(void* const* lanes, const char* name) {
  const Lane* there = nullptr;
  int missing = 0;
  for (int i = 0; i < warp_lanes; ++i) {
    if (lanes[i] == nullptr)
      ++missing;
    else
      there = lane_record<Lane>(lanes, i);
  }
  if (missing == 0) return;
  char text[64];
  snprintf(text, sizeof text, "%s: %d lanes of the warp have ended; all 32 must come", name, missing);
  tilewright_refuse(text, there->file, there->line);
}

template <typename Element>
inline void widen_pair(unsigned pair, float* low, int high_offset) {
  low[0] = Element::widen({static_cast<unsigned short>(pair)});
  low[high_offset] = Element::widen({static_cast<unsigned short>(pair >> 16)});
}

// The sixteen products are added exactly and rounded once with the accumulator: nearer to the truth than a GPU.
template <typename Element>
inline void multiply_accumulate(void* const* lanes) {
  require_whole_warp<MmaLane>(lanes, "mma");
  float a[16][16], b[16][8];
  for (int i = 0; i < warp_lanes; ++i) {
    auto* lane = lane_record<MmaLane>(lanes, i);
    int r = i / 4, c = i % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      widen_pair<Element>(lane->a[half], &a[r + 8 * half][c], 1);
      widen_pair<Element>(lane->a[half + 2], &a[r + 8 * half][c + 8], 1);
      widen_pair<Element>(lane->b[half], &b[c + 8 * half][r], 8);
    }
  }
  for (int row = 0; row < 16; ++row) {
    double sums[8] = {};
    for (int k = 0; k < 16; ++k)
      for (int col = 0; col < 8; ++col) sums[col] += static_cast<double>(a[row][k]) * b[k][col];
    for (int col = 0; col < 8; ++col) {
      float& d = lane_record<MmaLane>(lanes, row % 8 * 4 + col / 2)->d[row / 8 * 2 + col % 2];
      d = static_cast<float>(d + sums[col]);
    }
  }
}

}  // namespace emulator

template <typename Element>
inline void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::MmaLane mine{a, b, d, file, line};
  tilewright_warp_meet(emulator::multiply_accumulate<Element>, &mine, FULL_WARP, "mma", file, line);
}

#else

template <typename Element>
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);

template <>
__device__ __forceinline__ void mma_16x8x16<F16>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void mma_16x8x16<BF16>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

}  // namespace tilewright
