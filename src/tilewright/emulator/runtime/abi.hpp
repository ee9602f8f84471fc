// What a kernel's shared object calls in the runner. Plain types and C linkage: the two are compiled apart.
// Owns the boundary only; what CUDA spells stands in device.hpp, what the runner does in cta.hpp.
#pragma once

struct tilewright_index {
  unsigned x, y, z;
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
}
