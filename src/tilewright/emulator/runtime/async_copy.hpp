// cp.async: copies a thread has issued and not yet seen complete. When one completes, between its issue and
// the wait that covers it, is part of the schedule. Owns one thread's pending copies, in groups.
#pragma once

#include <string.h>

#include <vector>

#include "schedule.hpp"

struct Copy {
  void* smem;
  const void* gmem;
  unsigned bytes, source_bytes;
  unsigned group;

  void complete() const {
    memcpy(smem, gmem, source_bytes);
    memset(static_cast<char*>(smem) + source_bytes, 0, bytes - source_bytes);
  }
};

class AsyncCopies {
 public:
  void issue(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, Completion when, Random& random) {
    Copy copy{smem, gmem, bytes, source_bytes, open_group_};
    bool at_once = when == Completion::earliest || (when == Completion::random && (random.next() & 1));
    if (at_once)
      copy.complete();
    else
      pending_.push_back(copy);
  }

  void commit() { ++open_group_; }

  // Completes all but the `pending_groups` newest committed groups; what is not committed stays pending.
  void wait(unsigned pending_groups) {
    if (open_group_ <= pending_groups) return;
    size_t done = 0;
    for (; done < pending_.size() && pending_[done].group < open_group_ - pending_groups; ++done)
      pending_[done].complete();
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<long>(done));
  }

  // At a thread's end everything completes, committed or not.
  void finish() {
    for (const Copy& copy : pending_) copy.complete();
    pending_.clear();
    open_group_ = 0;
  }

 private:
  std::vector<Copy> pending_;
  unsigned open_group_ = 0;
};
