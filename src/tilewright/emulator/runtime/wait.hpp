// What a thread waits for, as a record, and what barriers may ask of the CTA whose threads they stop.
// Owns neither threads nor barriers: cta.hpp has the one, warps, named_barriers and mbarriers the others.
#pragma once

#include <stdint.h>

#include "report.hpp"

enum class WaitKind { none, syncthreads, warp, named_barrier, mbarrier, mbarrier_test, flag, warpgroup, registers };

struct Wait {
  WaitKind kind = WaitKind::none;
  unsigned value = 0;    // a parity, or what a flag is to hold
  uintptr_t object = 0;  // which of its kind: a barrier's number, an address
  Site site;

  bool same_as(const Wait& other) const {
    return kind == other.kind && object == other.object && value == other.value && site.line == other.site.line;
  }
};

// A CTA's threads, as a barrier sees them.
class Threads {
 public:
  virtual int count() const = 0;
  virtual int current() const = 0;

  // Stops the current thread until it is woken.
  virtual void block(const Wait& wait) = 0;

  // What the object stops threads for has come: those of the threads `first` … `last` - 1 that wait for it go on, in
  // the schedule's order.
  virtual void wake(WaitKind kind, uintptr_t object, int first, int last) = 0;

  // The lanes of the warp that starts with thread `first` have come together; `is_all` if none is left out.
  virtual void met(int first, uint32_t lanes, bool is_all, bool orders_memory) = 0;

  // What faults from now on is told as being at `site`, in the kernel's text; an empty one ends that.
  virtual void act_at(Site site) = 0;

  // What faults or breaks a rule from now on is told as this thread's. Returns the one before.
  virtual int act_as(int thread) = 0;

  // Ends the launch: the current thread breaks a rule at `site`, which the text tells with its values.
  [[noreturn]] virtual void refuse(Site site, const char* format, ...) __attribute__((format(printf, 3, 4))) = 0;

 protected:
  ~Threads() = default;
};
