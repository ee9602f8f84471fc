// A warp's 16×16×16 product through the first interface to tensor cores: which lane holds what is not told, so that a
// fragment is only loaded, multiplied and stored as a whole. 16-bit elements, float32 accumulators.
// Two bodies, CUDA and emulator. Addresses are in shared memory, 32-byte aligned; `ld` is the distance between stored
// rows in elements, a multiple of 8 (of 4 for the accumulator). The whole warp must come.
#pragma once

#include "tilewright/memory.cuh"
#include "tilewright/mma.cuh"

namespace tilewright {

// How a 16×16 operand lies in shared memory: rows of it side by side, or columns.
enum class Major { row, col };

template <typename Element, Major MAJOR>
struct WmmaA {
  unsigned x[8];
};

template <typename Element, Major MAJOR>
struct WmmaB {
  unsigned x[8];
};

struct WmmaAccumulator {
  float x[8];
};

#if TILEWRIGHT_EMULATED

namespace emulator {

struct WmmaLane {
  unsigned* x;
  const void* from;
  int ld;
  const char* file;
  int line;
};

// Lane l keeps the eight elements of row l / 2 of the operand from column l % 2 · 8 on, two a register.
template <bool by_column>
inline void wmma_gather(void* const* lanes) {
  require_whole_warp<WmmaLane>(lanes, "wmma load");
  for (int l = 0; l < warp_lanes; ++l) {
    auto* lane = lane_record<WmmaLane>(lanes, l);
    auto* from = static_cast<const unsigned short*>(lane->from);
    for (int i = 0; i < 4; ++i) {
      int row = l / 2, col = l % 2 * 8 + 2 * i;
      unsigned low = by_column ? from[col * lane->ld + row] : from[row * lane->ld + col];
      unsigned high = by_column ? from[(col + 1) * lane->ld + row] : from[row * lane->ld + col + 1];
      lane->x[i] = low | high << 16;
    }
  }
}

struct WmmaProduct {
  const unsigned *a, *b;
  float* d;
  const char* file;
  int line;
};

template <typename Element>
inline void wmma_multiply(void* const* lanes) {
  require_whole_warp<WmmaProduct>(lanes, "wmma");
  float a[16][16], b[16][16];
  for (int l = 0; l < warp_lanes; ++l) {
    auto* lane = lane_record<WmmaProduct>(lanes, l);
    for (int i = 0; i < 4; ++i) {
      widen_pair<Element>(lane->a[i], &a[l / 2][l % 2 * 8 + 2 * i], 1);
      widen_pair<Element>(lane->b[i], &b[l / 2][l % 2 * 8 + 2 * i], 1);
    }
  }
  for (int row = 0; row < 16; ++row) {
    double sums[16] = {};
    for (int k = 0; k < 16; ++k)
      for (int col = 0; col < 16; ++col) sums[col] += static_cast<double>(a[row][k]) * b[k][col];
    for (int col = 0; col < 16; ++col) {
      float& d = lane_record<WmmaProduct>(lanes, row * 2 + col / 8)->d[col % 8];
      d = static_cast<float>(d + sums[col]);
    }
  }
}

template <bool by_column>
inline void wmma_load(unsigned* x, const void* from, int ld, const char* file, int line) {
  // What this lane keeps, told to the trace as one access a stored row.
  int l = lane_index();
  auto* element = static_cast<const unsigned short*>(from);
  if (by_column) {
    for (int i = 0; i < 8; ++i) tilewright_reads(element + (l % 2 * 8 + i) * ld + l / 2, sizeof *element);
  } else {
    tilewright_reads(element + l / 2 * ld + l % 2 * 8, 8 * sizeof *element);
  }
  WmmaLane mine{x, from, ld, file, line};
  tilewright_warp_meet(wmma_gather<by_column>, &mine, FULL_WARP, "wmma load", file, line);
}

}  // namespace emulator

template <typename Element, Major MAJOR>
inline void wmma_load(WmmaA<Element, MAJOR>& a, const typename Element::storage* from, int ld,
                      const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::wmma_load<MAJOR == Major::col>(a.x, from, ld, file, line);
}

template <typename Element, Major MAJOR>
inline void wmma_load(WmmaB<Element, MAJOR>& b, const typename Element::storage* from, int ld,
                      const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::wmma_load<MAJOR == Major::col>(b.x, from, ld, file, line);
}

template <typename Element, Major MAJOR_A, Major MAJOR_B>
inline void wmma(WmmaAccumulator& d, const WmmaA<Element, MAJOR_A>& a, const WmmaB<Element, MAJOR_B>& b,
                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  emulator::WmmaProduct mine{a.x, b.x, d.x, file, line};
  tilewright_warp_meet(emulator::wmma_multiply<Element>, &mine, FULL_WARP, "wmma", file, line);
}

inline void wmma_store(float* to, int ld, const WmmaAccumulator& d) {
  int lane = emulator::lane_index();
  for (int i = 0; i < 8; ++i) to[lane / 2 * ld + lane % 2 * 8 + i] = d.x[i];
}

#else

// PTX spells eight registers of A and B for float16 and four for bfloat16, and the layout into every instruction.
#define TILEWRIGHT_WMMA_LOAD_F16(OPERAND, LAYOUT)                                                               \
  asm volatile("wmma.load." OPERAND ".sync.aligned." LAYOUT                                                     \
               ".m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"                              \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]), "=r"(x[4]), "=r"(x[5]), "=r"(x[6]), "=r"(x[7]) \
               : "r"(smem_address(from)), "r"(ld)                                                               \
               : "memory")
#define TILEWRIGHT_WMMA_LOAD_BF16(OPERAND, LAYOUT)                                                               \
  asm volatile("wmma.load." OPERAND ".sync.aligned." LAYOUT ".m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;" \
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                                                  \
               : "r"(smem_address(from)), "r"(ld)                                                                \
               : "memory")
#define TILEWRIGHT_WMMA_F16(LAYOUTS)                                                                                   \
  asm volatile(                                                                                                        \
      "wmma.mma.sync.aligned." LAYOUTS                                                                                 \
      ".m16n16k16.f32.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11, %12, %13, %14, %15}, "                  \
      "{%16, %17, %18, %19, %20, %21, %22, %23}, {%0, %1, %2, %3, %4, %5, %6, %7};"                                    \
      : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3]), "+f"(d.x[4]), "+f"(d.x[5]), "+f"(d.x[6]), "+f"(d.x[7]) \
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(a.x[4]), "r"(a.x[5]), "r"(a.x[6]), "r"(a.x[7]),        \
        "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]), "r"(b.x[3]), "r"(b.x[4]), "r"(b.x[5]), "r"(b.x[6]), "r"(b.x[7]))
#define TILEWRIGHT_WMMA_BF16(LAYOUTS)                                                                                  \
  asm volatile(                                                                                                        \
      "wmma.mma.sync.aligned." LAYOUTS                                                                                 \
      ".m16n16k16.f32.bf16.bf16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, "                            \
      "{%12, %13, %14, %15}, {%0, %1, %2, %3, %4, %5, %6, %7};"                                                        \
      : "+f"(d.x[0]), "+f"(d.x[1]), "+f"(d.x[2]), "+f"(d.x[3]), "+f"(d.x[4]), "+f"(d.x[5]), "+f"(d.x[6]), "+f"(d.x[7]) \
      : "r"(a.x[0]), "r"(a.x[1]), "r"(a.x[2]), "r"(a.x[3]), "r"(b.x[0]), "r"(b.x[1]), "r"(b.x[2]), "r"(b.x[3]))

template <typename Element>
constexpr bool is_f16 = false;
template <>
constexpr bool is_f16<F16> = true;

template <typename Element, Major MAJOR>
__device__ __forceinline__ void wmma_load(WmmaA<Element, MAJOR>& a, const typename Element::storage* from, int ld) {
  unsigned (&x)[8] = a.x;
  if constexpr (is_f16<Element> && MAJOR == Major::row) TILEWRIGHT_WMMA_LOAD_F16("a", "row");
  if constexpr (is_f16<Element> && MAJOR == Major::col) TILEWRIGHT_WMMA_LOAD_F16("a", "col");
  if constexpr (!is_f16<Element> && MAJOR == Major::row) TILEWRIGHT_WMMA_LOAD_BF16("a", "row");
  if constexpr (!is_f16<Element> && MAJOR == Major::col) TILEWRIGHT_WMMA_LOAD_BF16("a", "col");
}

template <typename Element, Major MAJOR>
__device__ __forceinline__ void wmma_load(WmmaB<Element, MAJOR>& b, const typename Element::storage* from, int ld) {
  unsigned (&x)[8] = b.x;
  if constexpr (is_f16<Element> && MAJOR == Major::row) TILEWRIGHT_WMMA_LOAD_F16("b", "row");
  if constexpr (is_f16<Element> && MAJOR == Major::col) TILEWRIGHT_WMMA_LOAD_F16("b", "col");
  if constexpr (!is_f16<Element> && MAJOR == Major::row) TILEWRIGHT_WMMA_LOAD_BF16("b", "row");
  if constexpr (!is_f16<Element> && MAJOR == Major::col) TILEWRIGHT_WMMA_LOAD_BF16("b", "col");
}

template <typename Element, Major MAJOR_A, Major MAJOR_B>
__device__ __forceinline__ void wmma(WmmaAccumulator& d, const WmmaA<Element, MAJOR_A>& a,
                                     const WmmaB<Element, MAJOR_B>& b) {
  constexpr bool row_a = MAJOR_A == Major::row, row_b = MAJOR_B == Major::row;
  if constexpr (is_f16<Element> && row_a && row_b) TILEWRIGHT_WMMA_F16("row.row");
  if constexpr (is_f16<Element> && row_a && !row_b) TILEWRIGHT_WMMA_F16("row.col");
  if constexpr (is_f16<Element> && !row_a && row_b) TILEWRIGHT_WMMA_F16("col.row");
  if constexpr (is_f16<Element> && !row_a && !row_b) TILEWRIGHT_WMMA_F16("col.col");
  if constexpr (!is_f16<Element> && row_a && row_b) TILEWRIGHT_WMMA_BF16("row.row");
  if constexpr (!is_f16<Element> && row_a && !row_b) TILEWRIGHT_WMMA_BF16("row.col");
  if constexpr (!is_f16<Element> && !row_a && row_b) TILEWRIGHT_WMMA_BF16("col.row");
  if constexpr (!is_f16<Element> && !row_a && !row_b) TILEWRIGHT_WMMA_BF16("col.col");
}

__device__ __forceinline__ void wmma_store(float* to, int ld, const WmmaAccumulator& d) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;"
               :
               : "r"(smem_address(to)), "f"(d.x[0]), "f"(d.x[1]), "f"(d.x[2]), "f"(d.x[3]), "f"(d.x[4]), "f"(d.x[5]),
                 "f"(d.x[6]), "f"(d.x[7]), "r"(ld)
               : "memory");
}

#undef TILEWRIGHT_WMMA_LOAD_F16
#undef TILEWRIGHT_WMMA_LOAD_BF16
#undef TILEWRIGHT_WMMA_F16
#undef TILEWRIGHT_WMMA_BF16

#endif

}  // namespace tilewright
