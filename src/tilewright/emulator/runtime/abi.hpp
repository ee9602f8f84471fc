// What a kernel's shared object calls in the runner. Plain types and C linkage: the two are compiled apart.
// Owns the boundary only; what CUDA spells stands in device.hpp, what the runner does in cta.hpp.
#pragma once

struct tilewright_index {
  unsigned x, y, z;
};

struct tilewright_wgmma_call {
  float* d;                 // n / 2 accumulators of the calling thread
  unsigned long long a, b;  // descriptors
  int n, element;           // element: 0 bfloat16, 1 float16, 2 TF32
  int a_transposed, b_transposed, accumulates;
};

extern "C" {

// Constant for the life of a thread, so that the compiler may keep the value across barriers.
__attribute__((const)) tilewright_index tilewright_thread_index() noexcept;
__attribute__((const)) tilewright_index tilewright_block_index() noexcept;
__attribute__((const)) tilewright_index tilewright_block_dim() noexcept;
__attribute__((const)) tilewright_index tilewright_grid_dim() noexcept;
__attribute__((const)) unsigned char* tilewright_dynamic_smem() noexcept;

// `file` and `line` say where the kernel waits or copies. They come from the source, since the compiler
// may put one call at two addresses.
void tilewright_syncthreads(const char* file, int line) noexcept;
void tilewright_cp_async(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, const char* file,
                         int line) noexcept;
void tilewright_cp_async_commit() noexcept;
void tilewright_cp_async_wait(unsigned pending_groups) noexcept;

// One arrival at barrier 1 to 15 of `threads` threads, which waits for the others or does not.
void tilewright_barrier(int id, int threads, int waits, const char* file, int line) noexcept;

// The lanes of `mask` come together, each with a record of its own; the last one's call computes for all. Where a lane
// is not there, since it is outside the mask or has ended, `compute` finds a null pointer. With no `compute` the lanes
// meet and what each did to memory before is ordered for all.
void tilewright_warp_meet(void (*compute)(void* const* lanes), void* lane, unsigned mask, const char* name,
                          const char* file, int line) noexcept;

// The call that follows reads this memory for the calling thread, from whichever thread.
void tilewright_reads(const void* start, unsigned bytes) noexcept;
void tilewright_writes(void* start, unsigned bytes) noexcept;

// An update adds `bytes` to what the phase waits for and then makes `arrivals`. A test lets others run first.
void tilewright_mbarrier_init(void* object, unsigned arrivals, const char* file, int line) noexcept;
void tilewright_mbarrier_inval(void* object, const char* file, int line) noexcept;
void tilewright_mbarrier_update(void* object, unsigned arrivals, long bytes, const char* file, int line) noexcept;
void tilewright_mbarrier_wait(void* object, unsigned parity, const char* file, int line) noexcept;
int tilewright_mbarrier_test(void* object, unsigned parity, const char* file, int line) noexcept;

// An arrival that follows the thread's copies; it is expected by the object's count, or adds itself to it.
void tilewright_cp_async_arrive(void* mbarrier, int is_expected, const char* file, int line) noexcept;

// What the asynchronous proxy may see from now on is what the thread knows to have happened.
void tilewright_proxy_fence() noexcept;

// Copies of boxes; `map` is as `run/tensor_map.py` encodes it for the emulator. A load counts its bytes in the
// mbarrier; a wait is for stores, whether for their reads of shared memory or for all of them.
void tilewright_tma_load(void* smem, const void* map, void* mbarrier, int col, int row, int entry, const char* file,
                         int line) noexcept;
void tilewright_tma_store(const void* map, const void* smem, int col, int row, int entry, const char* file,
                          int line) noexcept;
void tilewright_bulk_commit() noexcept;
void tilewright_bulk_wait(unsigned pending_groups, int reads_only) noexcept;

// Where dynamic shared memory holds the byte; what lies elsewhere is refused.
unsigned tilewright_smem_address(const void* smem) noexcept;

// A warpgroup's asynchronous product, and what orders it.
void tilewright_wgmma(tilewright_wgmma_call call, const char* file, int line) noexcept;
void tilewright_wgmma_fence(const char* file, int line) noexcept;
void tilewright_wgmma_commit(const char* file, int line) noexcept;
void tilewright_wgmma_wait(unsigned pending_groups, const char* file, int line) noexcept;

// The warp's registers a thread from now on: fewer, or more once others have released them.
void tilewright_set_registers(int count, int acquires, const char* file, int line) noexcept;

// Other CTAs run until the flag holds the value. `published` is a moment at which others may see a store.
void tilewright_wait_until(const unsigned* flag, unsigned value, const char* file, int line) noexcept;
void tilewright_published() noexcept;

// Ends the launch: the text says which rule of the call at this line is broken, with its values.
__attribute__((noreturn)) void tilewright_refuse(const char* text, const char* file, int line) noexcept;
}
