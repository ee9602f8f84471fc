// What watches a CTA's memory while it runs: in the tracing runner the tracer, in the fast one nothing at all.
#pragma once

#include "launch.hpp"
#include "range.hpp"

#ifdef TILEWRIGHT_TRACE
#include "trace/tracer.hpp"
constexpr bool observes = true;
#else
constexpr bool observes = false;

struct Observer {
  Observer(const Launch&, int) {}
  static void write_totals(const Launch&) {}
  void begin_cta(uint64_t, Extent, Extent) {}
  void stop(int, bool) {}
  void barrier() {}
  void finish() {}
  void copy(int, const void*, const void*, unsigned, unsigned, uint32_t) {}
  void commit_copies(int) {}
  void wait_copies(int, unsigned) {}
  uint32_t follow_copies(int) { return 0; }
  void load(int, uintptr_t, unsigned, uint32_t) {}
  void see_flag(int, uintptr_t, uint32_t) {}
  void meet(int, uint32_t, bool, bool) {}
  void init_mbarrier(uintptr_t, int, uint32_t) {}
  void use_mbarrier(uintptr_t, int, uint32_t) {}
  void arrive(uintptr_t, int) {}
  void arrive_copies(uintptr_t, int, uint32_t) {}
  void complete(uintptr_t, bool) {}
  void leave(uintptr_t, int) {}
  void writes(int, uintptr_t, unsigned, uint32_t) {}
  void proxy_fence(int) {}
  void bulk_load(int, uintptr_t, uintptr_t, unsigned, uint32_t) {}
  void bulk_load_row(int, uintptr_t, uintptr_t, unsigned, uint32_t) {}
  uint32_t bulk_mark(uintptr_t) { return 0; }
  void bulk_loaded(uintptr_t, uint32_t) {}
  void bulk_store(int, uintptr_t, unsigned, uint32_t) {}
  void bulk_store_row(int, uintptr_t, unsigned, uint32_t) {}
  void commit_bulk(int) {}
  void wait_bulk(int, unsigned, bool) {}
  void wgmma(int, const Range*, size_t, const Range*, size_t, uint32_t) {}
  void commit_wgmma(int) {}
  void wait_wgmma(int, unsigned) {}
};

#endif
