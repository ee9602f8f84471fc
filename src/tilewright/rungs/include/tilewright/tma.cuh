// The tensor memory accelerator: one thread has a box of a matrix copied between global and shared memory. A map says
// where the matrix lies, how large a box is and how its rows are swizzled; coordinates are a box's first column and row
// in elements, and the batch entry. The column is a multiple of 16 bytes. What lies outside the matrix arrives as
// zeros; a store leaves it alone but for the rest of the last 16 bytes of a row, and may not start before the matrix.
// Each function has two bodies, CUDA and emulator. sm_90 and later.
//
// A box in shared memory is its rows one after the other, aligned to 128 bytes, or to eight rows of the swizzle's span.
#pragma once

#include "tilewright/mbarrier.cuh"
#include "tilewright/proxy.cuh"
#include "tilewright/tensor_map.cuh"

namespace tilewright {

#if TILEWRIGHT_EMULATED

__forceinline__ void tma_prefetch(const TensorMap*) {}

__forceinline__ void tma_load(void* smem, const TensorMap* map, Mbarrier* barrier, int col, int row, int entry,
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_tma_load(smem, map, barrier, col, row, entry, file, line);
}

__forceinline__ void tma_store(const TensorMap* map, const void* smem, int col, int row, int entry,
                               const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_tma_store(map, smem, col, row, entry, file, line);
}

__forceinline__ void tma_commit() { tilewright_bulk_commit(); }

template <int pending_groups>
__forceinline__ void tma_wait_read() {
  tilewright_bulk_wait(pending_groups, 1);
}

template <int pending_groups>
__forceinline__ void tma_wait() {
  tilewright_bulk_wait(pending_groups, 0);
}

#elif __CUDA_ARCH__ >= 900

// Brings the map itself near, before its first use.
__device__ __forceinline__ void tma_prefetch(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

// The barrier's phase is over when all bytes of the box have come, those outside the matrix included: it must have been
// told to expect them.
__device__ __forceinline__ void tma_load(void* smem, const TensorMap* map, Mbarrier* barrier, int col, int row,
                                         int entry) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];"
      :
      : "r"(smem_address(smem)), "l"(map), "r"(smem_address(barrier)), "r"(col), "r"(row), "r"(entry)
      : "memory");
}

// A thread issues stores, closes a group with tma_commit, and waits until at most `pending_groups` of its newest groups
// are unfinished: tma_wait_read for shared memory to be free again, tma_wait for the results to be in global memory.
__device__ __forceinline__ void tma_store(const TensorMap* map, const void* smem, int col, int row, int entry) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
               :
               : "l"(map), "r"(smem_address(smem)), "r"(col), "r"(row), "r"(entry)
               : "memory");
}

__device__ __forceinline__ void tma_commit() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }

template <int pending_groups>
__device__ __forceinline__ void tma_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(pending_groups) : "memory");
}

template <int pending_groups>
__device__ __forceinline__ void tma_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" : : "n"(pending_groups) : "memory");
}

#endif

}  // namespace tilewright
