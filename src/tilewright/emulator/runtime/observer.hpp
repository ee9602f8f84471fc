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
};

#endif
