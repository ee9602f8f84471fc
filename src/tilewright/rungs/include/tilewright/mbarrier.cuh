// Barriers in shared memory with phases. A phase is over when the arrivals it was initialised for have come, and the
// bytes announced to it; the next one then begins with the same count. Waits name a phase by its parity, 0 for the
// first. Each function has two bodies, CUDA and emulator.
//
// One thread initialises, then __syncthreads, before anyone else comes. sm_80 has init, inval, arrive, test_wait and
// the arrivals of cp.async; counting bytes and waiting in hardware need sm_90.
#pragma once

#include "tilewright/memory.cuh"

namespace tilewright {

struct alignas(8) Mbarrier {
  unsigned long long opaque;
};

#if TILEWRIGHT_EMULATED

__forceinline__ void mbarrier_init(Mbarrier* barrier, unsigned arrivals, const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  tilewright_mbarrier_init(barrier, arrivals, file, line);
}

__forceinline__ void mbarrier_inval(Mbarrier* barrier, const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
  tilewright_mbarrier_inval(barrier, file, line);
}

__forceinline__ void mbarrier_arrive(Mbarrier* barrier, const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
  tilewright_mbarrier_update(barrier, 1, 0, file, line);
}

__forceinline__ bool mbarrier_test_wait(Mbarrier* barrier, unsigned parity, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
  return tilewright_mbarrier_test(barrier, parity, file, line) != 0;
}

__forceinline__ void mbarrier_wait(Mbarrier* barrier, unsigned parity, const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
  tilewright_mbarrier_wait(barrier, parity, file, line);
}

__forceinline__ void cp_async_mbarrier_arrive(Mbarrier* barrier, const char* file = __builtin_FILE(),
                                              int line = __builtin_LINE()) {
  tilewright_cp_async_arrive(barrier, 0, file, line);
}

__forceinline__ void cp_async_mbarrier_arrive_noinc(Mbarrier* barrier, const char* file = __builtin_FILE(),
                                                    int line = __builtin_LINE()) {
  tilewright_cp_async_arrive(barrier, 1, file, line);
}

__forceinline__ void mbarrier_expect_tx(Mbarrier* barrier, unsigned bytes, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
  tilewright_mbarrier_update(barrier, 0, bytes, file, line);
}

__forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* barrier, unsigned bytes, const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) {
  tilewright_mbarrier_update(barrier, 1, bytes, file, line);
}

__forceinline__ void mbarrier_complete_tx(Mbarrier* barrier, unsigned bytes, const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
  tilewright_mbarrier_update(barrier, 0, -static_cast<long>(bytes), file, line);
}

__forceinline__ bool mbarrier_try_wait(Mbarrier* barrier, unsigned parity, const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  return tilewright_mbarrier_test(barrier, parity, file, line) != 0;
}

#else

// sm_80 and later.

// For `arrivals` arrivals a phase.
__device__ __forceinline__ void mbarrier_init(Mbarrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(smem_address(barrier)), "r"(arrivals) : "memory");
}

// Ends its life: the memory is free for other use, or to be initialised again.
__device__ __forceinline__ void mbarrier_inval(Mbarrier* barrier) {
  asm volatile("mbarrier.inval.shared.b64 [%0];" : : "r"(smem_address(barrier)) : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}"
               :
               : "r"(smem_address(barrier))
               : "memory");
}

// Whether the phase of this parity is over. Does not wait.
__device__ __forceinline__ bool mbarrier_test_wait(Mbarrier* barrier, unsigned parity) {
  unsigned is_over;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_over)
      : "r"(smem_address(barrier)), "r"(parity)
      : "memory");
  return is_over != 0;
}

// An arrival once the copies that this thread has issued so far are complete. It adds itself to what the phase
// waits for; with noinc it is one of the arrivals that the barrier was initialised for.
__device__ __forceinline__ void cp_async_mbarrier_arrive(Mbarrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" : : "r"(smem_address(barrier)) : "memory");
}

__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(Mbarrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" : : "r"(smem_address(barrier)) : "memory");
}

#if __CUDA_ARCH__ >= 900

// sm_90 and later.

// The phase waits for `bytes` more.
__device__ __forceinline__ void mbarrier_expect_tx(Mbarrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
               :
               : "r"(smem_address(barrier)), "r"(bytes)
               : "memory");
}

// The phase waits for `bytes` more, then one arrival.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(Mbarrier* barrier, unsigned bytes) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}"
               :
               : "r"(smem_address(barrier)), "r"(bytes)
               : "memory");
}

// `bytes` of what the phase waits for have come.
__device__ __forceinline__ void mbarrier_complete_tx(Mbarrier* barrier, unsigned bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
               :
               : "r"(smem_address(barrier)), "r"(bytes)
               : "memory");
}

// Whether the phase of this parity is over, after waiting for it as long as the hardware cares to.
__device__ __forceinline__ bool mbarrier_try_wait(Mbarrier* barrier, unsigned parity) {
  unsigned is_over;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(is_over)
      : "r"(smem_address(barrier)), "r"(parity)
      : "memory");
  return is_over != 0;
}

#endif

// Returns when the phase of this parity is over. The phase in progress is waited for, the one before it is over.
__device__ __forceinline__ void mbarrier_wait(Mbarrier* barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
  while (!mbarrier_try_wait(barrier, parity)) {
  }
#else
  while (!mbarrier_test_wait(barrier, parity)) {
  }
#endif
}

#endif

}  // namespace tilewright
