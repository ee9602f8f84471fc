// CUDA's spellings for a host compiler. Kernels reach this through "tilewright/platform.cuh".
// Owns names and vector types; everything that waits or copies is a call into the runner (abi.hpp).
// Only cheap C headers: every kernel's compile time pays for what stands here.
#pragma once

#include <stdio.h>

#include "abi.hpp"

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

#define threadIdx (tilewright_thread_index())
#define blockIdx (tilewright_block_index())
#define blockDim (tilewright_block_dim())
#define gridDim (tilewright_grid_dim())

constexpr int warpSize = 32;

namespace tilewright::emulator {

// A compiler vector: reading or writing one is a single access of its size, as it is on the GPU.
template <typename T, int lanes>
using Lanes __attribute__((vector_size(sizeof(T) * lanes))) = T;

template <typename T>
struct Two {
  union {
    struct {
      T x, y;
    };
    Lanes<T, 2> lanes;
  };
  Two() = default;
  constexpr Two(T x, T y) : x(x), y(y) {}
  Two(const Two& other) : lanes(other.lanes) {}
  Two& operator=(const Two& other) {
    lanes = other.lanes;
    return *this;
  }
};

template <typename T>
struct Four {
  union {
    struct {
      T x, y, z, w;
    };
    Lanes<T, 4> lanes;
  };
  Four() = default;
  constexpr Four(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
  Four(const Four& other) : lanes(other.lanes) {}
  Four& operator=(const Four& other) {
    lanes = other.lanes;
    return *this;
  }
};

}  // namespace tilewright::emulator

using float2 = tilewright::emulator::Two<float>;
using float4 = tilewright::emulator::Four<float>;
using int2 = tilewright::emulator::Two<int>;
using int4 = tilewright::emulator::Four<int>;
using uint2 = tilewright::emulator::Two<unsigned>;
using uint4 = tilewright::emulator::Four<unsigned>;
using uint3 = tilewright_index;

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_syncthreads(file, line);
}

template <typename T>
inline T __ldg(const T* address) {
  return *address;
}

inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }

#define fmaf __builtin_fmaf
#define fmaxf __builtin_fmaxf
#define fminf __builtin_fminf
#define fabsf __builtin_fabsf
#define expf __builtin_expf

template <typename T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
