// Memory as the hardware moves it: 8- and 16-byte accesses, asynchronous copies to shared memory, dynamic shared
// memory. Each function has two bodies, CUDA and emulator. Owns no arithmetic and no layout.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

// COUNT elements in one word of 2, 4, 8 or 16 bytes. The emulator also takes 8-byte elements, of which four are 32
// bytes, aligned to 16 as the arrays are. Indexed with constants (unrolled), they stay in registers.
template <typename T, int COUNT>
struct alignas(COUNT * sizeof(T) < 16 ? COUNT * sizeof(T) : 16) Vec {
  static_assert(COUNT * sizeof(T) <= 16 || (TILEWRIGHT_EMULATED && sizeof(T) == 8), "an access is of 16 bytes at most");
  T elements[COUNT];

  __device__ __forceinline__ T& operator[](int i) { return elements[i]; }
  __device__ __forceinline__ T operator[](int i) const { return elements[i]; }
};

template <typename T>
using Vec2 = Vec<T, 2>;
template <typename T>
using Vec4 = Vec<T, 4>;

template <int bytes>
struct WordOf;

#if TILEWRIGHT_EMULATED
typedef unsigned short Word2 __attribute__((may_alias));
typedef unsigned Word4 __attribute__((may_alias));
typedef unsigned Word8 __attribute__((vector_size(8), may_alias));
typedef unsigned Word16 __attribute__((vector_size(16), may_alias));
typedef unsigned Word32 __attribute__((vector_size(32), aligned(16), may_alias));
template <>
struct WordOf<32> {
  using type = Word32;
};
#else
using Word2 = unsigned short;
using Word4 = unsigned;
using Word8 = uint2;
using Word16 = uint4;
#endif

template <>
struct WordOf<2> {
  using type = Word2;
};
template <>
struct WordOf<4> {
  using type = Word4;
};
template <>
struct WordOf<8> {
  using type = Word8;
};
template <>
struct WordOf<16> {
  using type = Word16;
};

// One access of COUNT elements from or to an address that is a multiple of their size.
template <int COUNT, typename T>
__device__ __forceinline__ Vec<T, COUNT> load_word(const T* address) {
  using Word = typename WordOf<COUNT * sizeof(T)>::type;
  Vec<T, COUNT> value;
  *reinterpret_cast<Word*>(value.elements) = *reinterpret_cast<const Word*>(address);
  return value;
}

template <int COUNT, typename T>
__device__ __forceinline__ void store_word(T* address, const Vec<T, COUNT>& value) {
  using Word = typename WordOf<COUNT * sizeof(T)>::type;
  *reinterpret_cast<Word*>(address) = *reinterpret_cast<const Word*>(value.elements);
}

// One access of 8 bytes from `address`, which must be 8-byte aligned.
template <typename T>
__device__ __forceinline__ Vec2<T> load2(const T* address) {
  return load_word<2>(address);
}

// One access of 16 bytes from `address`, which must be 16-byte aligned.
template <typename T>
__device__ __forceinline__ Vec4<T> load4(const T* address) {
  return load_word<4>(address);
}

// load4 from global memory past the L1: the L2 serves it.
template <typename T>
__device__ __forceinline__ Vec4<T> load4_l2(const T* address) {
#if TILEWRIGHT_EMULATED
  return load4(address);
#else
  Vec4<T> value;
  *reinterpret_cast<Word16*>(value.elements) = __ldcg(reinterpret_cast<const Word16*>(address));
  return value;
#endif
}

// One access of 16 bytes to `address`, which must be 16-byte aligned.
template <typename T>
__device__ __forceinline__ void store4(T* address, const Vec4<T>& value) {
  store_word(address, value);
}

// store_word for what is not read again soon: it makes room in the caches for other data first.
template <int COUNT, typename T>
__device__ __forceinline__ void store_word_streaming(T* address, const Vec<T, COUNT>& value) {
#if TILEWRIGHT_EMULATED
  store_word(address, value);
#else
  using Word = typename WordOf<COUNT * sizeof(T)>::type;
  __stcs(reinterpret_cast<Word*>(address), *reinterpret_cast<const Word*>(value.elements));
#endif
}

// Asynchronous copies. A thread issues copies, closes a group with cp_async_commit, and waits until at most
// `pending_groups` of its newest groups are unfinished. Other threads see the data after a barrier that follows
// the wait. `bytes` is 4, 8 or 16, and both addresses are multiples of it. The zero-fill form reads
// `source_bytes` (0 to `bytes`) and fills the rest with zeros; with 0 it does not read `gmem` at all. A kernel names
// `bytes` by its element, as in cp_async<4 * sizeof(Element)>: the emulator also copies 32, four 8-byte elements.

#if TILEWRIGHT_EMULATED

template <int bytes>
__forceinline__ void cp_async_zfill(void* smem, const void* gmem, int source_bytes, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16 || bytes == 32, "cp.async copies 4, 8 or 16 bytes");
  tilewright_cp_async(smem, gmem, bytes, static_cast<unsigned>(source_bytes), file, line);
}

template <int bytes>
__forceinline__ void cp_async(void* smem, const void* gmem, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  cp_async_zfill<bytes>(smem, gmem, bytes, file, line);
}

__forceinline__ void cp_async_commit() { tilewright_cp_async_commit(); }

template <int pending_groups>
__forceinline__ void cp_async_wait() {
  tilewright_cp_async_wait(pending_groups);
}

// The launch's dynamic shared memory, 1024-byte aligned.
__forceinline__ unsigned char* dynamic_smem() { return tilewright_dynamic_smem(); }

// Where dynamic shared memory holds the byte, as a wgmma descriptor counts.
__forceinline__ unsigned smem_address(const void* smem) { return tilewright_smem_address(smem); }

#else

__device__ __forceinline__ unsigned smem_address(const void* smem) {
  return static_cast<unsigned>(__cvta_generic_to_shared(smem));
}

// 16 bytes bypass L1 (.cg), which serves a tile that each CTA reads once, and bring their line to the L2; smaller
// copies exist only as .ca.
template <int bytes>
__device__ __forceinline__ void cp_async_zfill(void* smem, const void* gmem, int source_bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(smem_address(smem)), "l"(__cvta_generic_to_global(gmem)), "r"(source_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(smem_address(smem)), "l"(__cvta_generic_to_global(gmem)), "n"(bytes), "r"(source_bytes)
                 : "memory");
  }
}

template <int bytes>
__device__ __forceinline__ void cp_async(void* smem, const void* gmem) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;"
                 :
                 : "r"(smem_address(smem)), "l"(__cvta_generic_to_global(gmem))
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                 :
                 : "r"(smem_address(smem)), "l"(__cvta_generic_to_global(gmem)), "n"(bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }

template <int pending_groups>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(pending_groups) : "memory");
}

// The launch's dynamic shared memory, 1024-byte aligned.
__device__ __forceinline__ unsigned char* dynamic_smem() {
  extern __shared__ __align__(1024) unsigned char tilewright_dynamic_smem[];
  return tilewright_dynamic_smem;
}

#endif

}  // namespace tilewright
