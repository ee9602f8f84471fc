// bar.sync and bar.arrive on a barrier with a number and a count of threads. Owns the counts of barriers 1 to 15;
// barrier 0 is __syncthreads and the CTA's own.
#pragma once

#include "wait.hpp"

class NamedBarriers {
 public:
  void reset() {
    for (Barrier& barrier : barriers_) barrier = {};
  }

  // One arrival of the current thread. With `waits` it goes on when `expected` arrivals have come, else at once.
  void arrive(Threads& threads, int id, int expected, bool waits, Site site) {
    check(threads, id, expected, site);
    Barrier& barrier = barriers_[id];
    if (barrier.arrived == 0) barrier.expected = expected, barrier.first = site;
    if (barrier.expected != expected)
      threads.refuse(site, "barrier %d is joined for %d threads here and for %d at line %d", id, expected,
                     barrier.expected, barrier.first.line);
    auto object = static_cast<uintptr_t>(id);
    if (++barrier.arrived == expected) {
      barrier.arrived = 0;
      threads.wake(WaitKind::named_barrier, object, 0, threads.count());
    } else if (waits) {
      threads.block({WaitKind::named_barrier, 0, object, site});
    }
  }

  void describe(Report& report, uintptr_t object) const {
    const Barrier& barrier = barriers_[object];
    report.add("\"id\":%d,\"arrived\":%d,\"expected\":%d,", static_cast<int>(object), barrier.arrived,
               barrier.expected);
  }

 private:
  static constexpr int most = 16, warp_threads = 32;

  struct Barrier {
    int expected = 0, arrived = 0;
    Site first;
  };

  static void check(Threads& threads, int id, int expected, Site site) {
    if (id < 1 || id >= most)
      threads.refuse(site, "barrier %d: must be 1 to %d; barrier 0 is __syncthreads", id, most - 1);
    if (expected <= 0 || expected % warp_threads != 0)
      threads.refuse(site, "barrier %d for %d threads: must be whole warps, a multiple of %d", id, expected,
                     warp_threads);
  }

  Barrier barriers_[most];
};
