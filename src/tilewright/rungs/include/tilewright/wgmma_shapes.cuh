// wgmma for every width: one asm statement needs its registers spelt out. Names and operands of 4·i accumulators, and
// one specialisation of WgmmaShape for each N. Included by wgmma.cuh alone.
#pragma once

namespace tilewright {

template <int N>
struct WgmmaShape;

#define TILEWRIGHT_NAMES_1 "%0, %1, %2, %3"
#define TILEWRIGHT_NAMES_2 TILEWRIGHT_NAMES_1 ", %4, %5, %6, %7"
#define TILEWRIGHT_NAMES_3 TILEWRIGHT_NAMES_2 ", %8, %9, %10, %11"
#define TILEWRIGHT_NAMES_4 TILEWRIGHT_NAMES_3 ", %12, %13, %14, %15"
#define TILEWRIGHT_NAMES_5 TILEWRIGHT_NAMES_4 ", %16, %17, %18, %19"
#define TILEWRIGHT_NAMES_6 TILEWRIGHT_NAMES_5 ", %20, %21, %22, %23"
#define TILEWRIGHT_NAMES_7 TILEWRIGHT_NAMES_6 ", %24, %25, %26, %27"
#define TILEWRIGHT_NAMES_8 TILEWRIGHT_NAMES_7 ", %28, %29, %30, %31"
#define TILEWRIGHT_NAMES_9 TILEWRIGHT_NAMES_8 ", %32, %33, %34, %35"
#define TILEWRIGHT_NAMES_10 TILEWRIGHT_NAMES_9 ", %36, %37, %38, %39"
#define TILEWRIGHT_NAMES_11 TILEWRIGHT_NAMES_10 ", %40, %41, %42, %43"
#define TILEWRIGHT_NAMES_12 TILEWRIGHT_NAMES_11 ", %44, %45, %46, %47"
#define TILEWRIGHT_NAMES_13 TILEWRIGHT_NAMES_12 ", %48, %49, %50, %51"
#define TILEWRIGHT_NAMES_14 TILEWRIGHT_NAMES_13 ", %52, %53, %54, %55"
#define TILEWRIGHT_NAMES_15 TILEWRIGHT_NAMES_14 ", %56, %57, %58, %59"
#define TILEWRIGHT_NAMES_16 TILEWRIGHT_NAMES_15 ", %60, %61, %62, %63"
#define TILEWRIGHT_NAMES_17 TILEWRIGHT_NAMES_16 ", %64, %65, %66, %67"
#define TILEWRIGHT_NAMES_18 TILEWRIGHT_NAMES_17 ", %68, %69, %70, %71"
#define TILEWRIGHT_NAMES_19 TILEWRIGHT_NAMES_18 ", %72, %73, %74, %75"
#define TILEWRIGHT_NAMES_20 TILEWRIGHT_NAMES_19 ", %76, %77, %78, %79"
#define TILEWRIGHT_NAMES_21 TILEWRIGHT_NAMES_20 ", %80, %81, %82, %83"
#define TILEWRIGHT_NAMES_22 TILEWRIGHT_NAMES_21 ", %84, %85, %86, %87"
#define TILEWRIGHT_NAMES_23 TILEWRIGHT_NAMES_22 ", %88, %89, %90, %91"
#define TILEWRIGHT_NAMES_24 TILEWRIGHT_NAMES_23 ", %92, %93, %94, %95"
#define TILEWRIGHT_NAMES_25 TILEWRIGHT_NAMES_24 ", %96, %97, %98, %99"
#define TILEWRIGHT_NAMES_26 TILEWRIGHT_NAMES_25 ", %100, %101, %102, %103"
#define TILEWRIGHT_NAMES_27 TILEWRIGHT_NAMES_26 ", %104, %105, %106, %107"
#define TILEWRIGHT_NAMES_28 TILEWRIGHT_NAMES_27 ", %108, %109, %110, %111"
#define TILEWRIGHT_NAMES_29 TILEWRIGHT_NAMES_28 ", %112, %113, %114, %115"
#define TILEWRIGHT_NAMES_30 TILEWRIGHT_NAMES_29 ", %116, %117, %118, %119"
#define TILEWRIGHT_NAMES_31 TILEWRIGHT_NAMES_30 ", %120, %121, %122, %123"
#define TILEWRIGHT_NAMES_32 TILEWRIGHT_NAMES_31 ", %124, %125, %126, %127"

#define TILEWRIGHT_FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TILEWRIGHT_SUMS_1 TILEWRIGHT_FOUR(0)
#define TILEWRIGHT_SUMS_2 TILEWRIGHT_SUMS_1, TILEWRIGHT_FOUR(4)
#define TILEWRIGHT_SUMS_3 TILEWRIGHT_SUMS_2, TILEWRIGHT_FOUR(8)
#define TILEWRIGHT_SUMS_4 TILEWRIGHT_SUMS_3, TILEWRIGHT_FOUR(12)
#define TILEWRIGHT_SUMS_5 TILEWRIGHT_SUMS_4, TILEWRIGHT_FOUR(16)
#define TILEWRIGHT_SUMS_6 TILEWRIGHT_SUMS_5, TILEWRIGHT_FOUR(20)
#define TILEWRIGHT_SUMS_7 TILEWRIGHT_SUMS_6, TILEWRIGHT_FOUR(24)
#define TILEWRIGHT_SUMS_8 TILEWRIGHT_SUMS_7, TILEWRIGHT_FOUR(28)
#define TILEWRIGHT_SUMS_9 TILEWRIGHT_SUMS_8, TILEWRIGHT_FOUR(32)
#define TILEWRIGHT_SUMS_10 TILEWRIGHT_SUMS_9, TILEWRIGHT_FOUR(36)
#define TILEWRIGHT_SUMS_11 TILEWRIGHT_SUMS_10, TILEWRIGHT_FOUR(40)
#define TILEWRIGHT_SUMS_12 TILEWRIGHT_SUMS_11, TILEWRIGHT_FOUR(44)
#define TILEWRIGHT_SUMS_13 TILEWRIGHT_SUMS_12, TILEWRIGHT_FOUR(48)
#define TILEWRIGHT_SUMS_14 TILEWRIGHT_SUMS_13, TILEWRIGHT_FOUR(52)
#define TILEWRIGHT_SUMS_15 TILEWRIGHT_SUMS_14, TILEWRIGHT_FOUR(56)
#define TILEWRIGHT_SUMS_16 TILEWRIGHT_SUMS_15, TILEWRIGHT_FOUR(60)
#define TILEWRIGHT_SUMS_17 TILEWRIGHT_SUMS_16, TILEWRIGHT_FOUR(64)
#define TILEWRIGHT_SUMS_18 TILEWRIGHT_SUMS_17, TILEWRIGHT_FOUR(68)
#define TILEWRIGHT_SUMS_19 TILEWRIGHT_SUMS_18, TILEWRIGHT_FOUR(72)
#define TILEWRIGHT_SUMS_20 TILEWRIGHT_SUMS_19, TILEWRIGHT_FOUR(76)
#define TILEWRIGHT_SUMS_21 TILEWRIGHT_SUMS_20, TILEWRIGHT_FOUR(80)
#define TILEWRIGHT_SUMS_22 TILEWRIGHT_SUMS_21, TILEWRIGHT_FOUR(84)
#define TILEWRIGHT_SUMS_23 TILEWRIGHT_SUMS_22, TILEWRIGHT_FOUR(88)
#define TILEWRIGHT_SUMS_24 TILEWRIGHT_SUMS_23, TILEWRIGHT_FOUR(92)
#define TILEWRIGHT_SUMS_25 TILEWRIGHT_SUMS_24, TILEWRIGHT_FOUR(96)
#define TILEWRIGHT_SUMS_26 TILEWRIGHT_SUMS_25, TILEWRIGHT_FOUR(100)
#define TILEWRIGHT_SUMS_27 TILEWRIGHT_SUMS_26, TILEWRIGHT_FOUR(104)
#define TILEWRIGHT_SUMS_28 TILEWRIGHT_SUMS_27, TILEWRIGHT_FOUR(108)
#define TILEWRIGHT_SUMS_29 TILEWRIGHT_SUMS_28, TILEWRIGHT_FOUR(112)
#define TILEWRIGHT_SUMS_30 TILEWRIGHT_SUMS_29, TILEWRIGHT_FOUR(116)
#define TILEWRIGHT_SUMS_31 TILEWRIGHT_SUMS_30, TILEWRIGHT_FOUR(120)
#define TILEWRIGHT_SUMS_32 TILEWRIGHT_SUMS_31, TILEWRIGHT_FOUR(124)

// COUNT: groups of four accumulators. A, B, ADD, TA and TB: the numbers of the operands behind them.
#define TILEWRIGHT_WGMMA(N, TYPES, COUNT, A, B, ADD)                                               \
  "{\n.reg .pred add;\nsetp.ne.b32 add, %" #ADD ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N TYPES \
  " {" TILEWRIGHT_NAMES_##COUNT "}, %" #A ", %" #B ", add, 1, 1"
#define TILEWRIGHT_SHAPE(N, COUNT, A, B, ADD, TA, TB)                                                              \
  template <>                                                                                                      \
  struct WgmmaShape<N> {                                                                                           \
    template <typename Element, int A_TRANSPOSED, int B_TRANSPOSED>                                                \
    static __device__ __forceinline__ void multiply(float (&d)[N / 2], unsigned long long a, unsigned long long b, \
                                                    int add) {                                                     \
      if constexpr (is_same<Element, BF16>) {                                                                      \
        asm volatile(TILEWRIGHT_WGMMA(N, "k16.f32.bf16.bf16", COUNT, A, B, ADD) ", %" #TA ", %" #TB ";\n}"         \
                     : TILEWRIGHT_SUMS_##COUNT                                                                     \
                     : "l"(a), "l"(b), "r"(add), "n"(A_TRANSPOSED), "n"(B_TRANSPOSED));                            \
      } else if constexpr (is_same<Element, F16>) {                                                                \
        asm volatile(TILEWRIGHT_WGMMA(N, "k16.f32.f16.f16", COUNT, A, B, ADD) ", %" #TA ", %" #TB ";\n}"           \
                     : TILEWRIGHT_SUMS_##COUNT                                                                     \
                     : "l"(a), "l"(b), "r"(add), "n"(A_TRANSPOSED), "n"(B_TRANSPOSED));                            \
      } else {                                                                                                     \
        static_assert(!A_TRANSPOSED && !B_TRANSPOSED, "wgmma transposes 16-bit elements only");                    \
        asm volatile(TILEWRIGHT_WGMMA(N, "k8.f32.tf32.tf32", COUNT, A, B, ADD) ";\n}"                              \
                     : TILEWRIGHT_SUMS_##COUNT                                                                     \
                     : "l"(a), "l"(b), "r"(add));                                                                  \
      }                                                                                                            \
    }                                                                                                              \
  };

TILEWRIGHT_SHAPE(8, 1, 4, 5, 6, 7, 8)
TILEWRIGHT_SHAPE(16, 2, 8, 9, 10, 11, 12)
TILEWRIGHT_SHAPE(24, 3, 12, 13, 14, 15, 16)
TILEWRIGHT_SHAPE(32, 4, 16, 17, 18, 19, 20)
TILEWRIGHT_SHAPE(40, 5, 20, 21, 22, 23, 24)
TILEWRIGHT_SHAPE(48, 6, 24, 25, 26, 27, 28)
TILEWRIGHT_SHAPE(56, 7, 28, 29, 30, 31, 32)
TILEWRIGHT_SHAPE(64, 8, 32, 33, 34, 35, 36)
TILEWRIGHT_SHAPE(72, 9, 36, 37, 38, 39, 40)
TILEWRIGHT_SHAPE(80, 10, 40, 41, 42, 43, 44)
TILEWRIGHT_SHAPE(88, 11, 44, 45, 46, 47, 48)
TILEWRIGHT_SHAPE(96, 12, 48, 49, 50, 51, 52)
TILEWRIGHT_SHAPE(104, 13, 52, 53, 54, 55, 56)
TILEWRIGHT_SHAPE(112, 14, 56, 57, 58, 59, 60)
TILEWRIGHT_SHAPE(120, 15, 60, 61, 62, 63, 64)
TILEWRIGHT_SHAPE(128, 16, 64, 65, 66, 67, 68)
TILEWRIGHT_SHAPE(136, 17, 68, 69, 70, 71, 72)
TILEWRIGHT_SHAPE(144, 18, 72, 73, 74, 75, 76)
TILEWRIGHT_SHAPE(152, 19, 76, 77, 78, 79, 80)
TILEWRIGHT_SHAPE(160, 20, 80, 81, 82, 83, 84)
TILEWRIGHT_SHAPE(168, 21, 84, 85, 86, 87, 88)
TILEWRIGHT_SHAPE(176, 22, 88, 89, 90, 91, 92)
TILEWRIGHT_SHAPE(184, 23, 92, 93, 94, 95, 96)
TILEWRIGHT_SHAPE(192, 24, 96, 97, 98, 99, 100)
TILEWRIGHT_SHAPE(200, 25, 100, 101, 102, 103, 104)
TILEWRIGHT_SHAPE(208, 26, 104, 105, 106, 107, 108)
TILEWRIGHT_SHAPE(216, 27, 108, 109, 110, 111, 112)
TILEWRIGHT_SHAPE(224, 28, 112, 113, 114, 115, 116)
TILEWRIGHT_SHAPE(232, 29, 116, 117, 118, 119, 120)
TILEWRIGHT_SHAPE(240, 30, 120, 121, 122, 123, 124)
TILEWRIGHT_SHAPE(248, 31, 124, 125, 126, 127, 128)
TILEWRIGHT_SHAPE(256, 32, 128, 129, 130, 131, 132)

#undef TILEWRIGHT_SHAPE
#undef TILEWRIGHT_WGMMA

}  // namespace tilewright
