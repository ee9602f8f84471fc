// What a CTA's threads wait for, for a report: alike waits together, each with what its object still lacks.
// Owns the form of a wait in the report; the words are the parent's.
#pragma once

#include "cta.hpp"

inline void Cta::describe_wait(Report& report, int thread, int waiting) const {
  static constexpr const char* names[] = {"none",     "syncthreads", "warp",      "named_barrier", "mbarrier",
                                          "mbarrier", "flag",        "warpgroup", "registers"};
  const Wait& wait = threads_[thread].wait;
  report.add("{\"kind\":\"%s\",\"count\":%d,", names[static_cast<int>(wait.kind)], waiting);
  if (wait.kind == WaitKind::warp) warps_.describe(report, thread, wait.object);
  if (wait.kind == WaitKind::named_barrier) named_barriers_.describe(report, wait.object);
  if (wait.kind == WaitKind::mbarrier || wait.kind == WaitKind::mbarrier_test) {
    SharedMemory::Place place = smem_.place(reinterpret_cast<const void*>(wait.object));
    report.add("\"space\":\"%s\",\"offset\":%ld,\"parity\":%u,", place.space, place.offset, wait.value);
    mbarriers_.describe(report, wait.object);
  }
  if (wait.kind == WaitKind::flag) {
    unsigned found = *reinterpret_cast<const volatile unsigned*>(wait.object);
    report.add("\"address\":%lu,\"wanted\":%u,\"found\":%u,", wait.object, wait.value, found);
  }
  if (wait.kind == WaitKind::warpgroup) warpgroups_.describe(report, thread);
  if (wait.kind == WaitKind::registers) registers_.describe(report, thread, wait.value);
  report.add_site("site", wait.site).add_index("first", threads_[thread].index);
  report.add("\"thread\":%d}", thread);
}

inline void Cta::describe_waits(Report& report) const {
  constexpr int most_groups = 8;
  report.add("{\"cta\":[%u,%u,%u],\"exited\":%d,\"waits\":[", index_.x, index_.y, index_.z, exited_);
  std::vector<bool> told(threads_.size());
  int groups = 0;
  for (size_t i = 0; i < threads_.size() && groups < most_groups; ++i) {
    if (told[i] || threads_[i].exited) continue;
    int waiting = 0;
    for (size_t j = i; j < threads_.size(); ++j)
      if (!threads_[j].exited && threads_[j].wait.same_as(threads_[i].wait)) told[j] = true, ++waiting;
    report.add(groups++ == 0 ? "" : ",");
    describe_wait(report, static_cast<int>(i), waiting);
  }
  report.add("]}");
}
