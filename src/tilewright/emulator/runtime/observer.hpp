// What watches a CTA's memory while it runs: in the tracing runner the tracer, in the fast one nothing at all.
#pragma once

#include "launch.hpp"

#ifdef TILEWRIGHT_TRACE
#include "trace/tracer.hpp"
#else

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
  void arrive(uintptr_t, int) {}
  void arrive_copies(uintptr_t, int, uint32_t) {}
  void complete(uintptr_t, bool) {}
  void leave(uintptr_t, int) {}
};

#endif
