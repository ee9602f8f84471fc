// The calls of abi.hpp, which a kernel makes, handed to the CTA that the calling OS thread runs.
#pragma once

#include "describe.hpp"

extern "C" {
tilewright_index tilewright_thread_index() noexcept { return this_cta->thread_index(); }
tilewright_index tilewright_block_index() noexcept { return this_cta->index(); }
tilewright_index tilewright_block_dim() noexcept { return this_cta->launch().block; }
tilewright_index tilewright_grid_dim() noexcept { return this_cta->launch().grid; }
unsigned char* tilewright_dynamic_smem() noexcept { return this_cta->dynamic_smem(); }

void tilewright_syncthreads(const char* file, int line) noexcept { this_cta->syncthreads({file, line}); }
void tilewright_barrier(int id, int threads, int waits, const char* file, int line) noexcept {
  this_cta->arrive_at_barrier(id, threads, waits != 0, {file, line});
}
void tilewright_warp_meet(void (*compute)(void* const* lanes), void* lane, unsigned mask, const char* name,
                          const char* file, int line) noexcept {
  this_cta->meet({compute, name, mask, {file, line}}, lane);
}
void tilewright_reads(const void* start, unsigned bytes) noexcept {
  this_cta->read(start, bytes, __builtin_return_address(0));
}
void tilewright_writes(void* start, unsigned bytes) noexcept {
  this_cta->write(start, bytes, __builtin_return_address(0));
}

void tilewright_mbarrier_init(void* object, unsigned arrivals, const char* file, int line) noexcept {
  this_cta->init_mbarrier(object, arrivals, {file, line}, __builtin_return_address(0));
}
void tilewright_mbarrier_inval(void* object, const char* file, int line) noexcept {
  this_cta->use_mbarrier(object, __builtin_return_address(0));
  this_cta->invalidate_mbarrier(object, {file, line});
}
void tilewright_mbarrier_update(void* object, unsigned arrivals, long bytes, const char* file, int line) noexcept {
  this_cta->use_mbarrier(object, __builtin_return_address(0));
  this_cta->update_mbarrier(object, arrivals, bytes, {file, line});
}
void tilewright_mbarrier_wait(void* object, unsigned parity, const char* file, int line) noexcept {
  this_cta->use_mbarrier(object, __builtin_return_address(0));
  this_cta->wait_mbarrier(object, parity, {file, line});
}
int tilewright_mbarrier_test(void* object, unsigned parity, const char* file, int line) noexcept {
  this_cta->use_mbarrier(object, __builtin_return_address(0));
  return this_cta->test_mbarrier(object, parity, {file, line});
}

void tilewright_cp_async(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, const char* file,
                         int line) noexcept {
  this_cta->issue_copy(smem, gmem, bytes, source_bytes, {file, line}, __builtin_return_address(0));
}
void tilewright_cp_async_commit() noexcept { this_cta->commit_copies(); }
void tilewright_cp_async_wait(unsigned pending_groups) noexcept { this_cta->wait_copies(pending_groups); }
void tilewright_cp_async_arrive(void* mbarrier, int is_expected, const char* file, int line) noexcept {
  this_cta->use_mbarrier(mbarrier, __builtin_return_address(0));
  this_cta->follow_copies(mbarrier, is_expected != 0, {file, line});
}

void tilewright_proxy_fence() noexcept { this_cta->observer().proxy_fence(this_cta->current()); }
void tilewright_tma_load(void* smem, const void* map, void* mbarrier, int col, int row, int entry, const char* file,
                         int line) noexcept {
  uint32_t code_site = this_cta->code_site(__builtin_return_address(0));
  this_cta->tensor_memory().load({{smem, map, col, row, entry}, {file, line}, code_site}, mbarrier);
}
void tilewright_tma_store(const void* map, const void* smem, int col, int row, int entry, const char* file,
                          int line) noexcept {
  uint32_t code_site = this_cta->code_site(__builtin_return_address(0));
  this_cta->tensor_memory().store({{smem, map, col, row, entry}, {file, line}, code_site});
}
void tilewright_bulk_commit() noexcept { this_cta->tensor_memory().commit(); }
void tilewright_bulk_wait(unsigned pending_groups, int reads_only) noexcept {
  this_cta->tensor_memory().wait(pending_groups, reads_only != 0);
}

unsigned tilewright_smem_address(const void* smem) noexcept {
  return this_cta->smem_address(smem, __builtin_return_address(0));
}
void tilewright_wgmma(tilewright_wgmma_call call, const char* file, int line) noexcept {
  this_cta->warpgroups().multiply(call, {file, line}, this_cta->code_site(__builtin_return_address(0)));
}
void tilewright_wgmma_fence(const char* file, int line) noexcept {
  this_cta->meet_warp("wgmma_fence", {file, line});
  this_cta->warpgroups().fence();
}
void tilewright_wgmma_commit(const char* file, int line) noexcept {
  this_cta->meet_warp("wgmma_commit", {file, line});
  this_cta->warpgroups().commit({file, line});
}
void tilewright_wgmma_wait(unsigned pending_groups, const char* file, int line) noexcept {
  this_cta->meet_warp("wgmma_wait", {file, line});
  this_cta->warpgroups().wait(pending_groups);
}
void tilewright_set_registers(int count, int acquires, const char* file, int line) noexcept {
  this_cta->set_registers(count, acquires != 0, {file, line});
}

void tilewright_wait_until(const unsigned* flag, unsigned value, const char* file, int line) noexcept {
  this_cta->wait_flag(flag, value, {file, line}, __builtin_return_address(0));
}
void tilewright_published() noexcept { this_cta->publish(); }
void tilewright_refuse(const char* text, const char* file, int line) noexcept {
  this_cta->refuse({file, line}, "%s", text);
}
}
