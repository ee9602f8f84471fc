// cp.async: copies a thread has issued and not yet seen complete, and the mbarrier arrivals that follow them. When one
// completes, between its issue and the wait that covers it, is part of the schedule. Owns one thread's, in order.
#pragma once

#include <string.h>

#include <vector>

#include "report.hpp"
#include "schedule.hpp"

struct Copy {
  void* smem;
  const void* gmem;
  unsigned bytes, source_bytes;

  void complete() const {
    memcpy(smem, gmem, source_bytes);
    memset(static_cast<char*>(smem) + source_bytes, 0, bytes - source_bytes);
  }
};

// An arrival at an mbarrier, once the copies before it are complete.
struct Arrival {
  void* mbarrier;
  Site site;
  int thread;
  uint32_t copied;  // the copies that it follows, as the observer counts them
};

class AsyncCopies {
 public:
  void issue(const Copy& copy, Completion when, Random& random) {
    if (at_once(when, random))
      copy.complete();
    else
      pending_.push_back({copy, {}, open_group_});
  }

  // Returns whether the arrival is made now; if not, it stays pending behind the copies before it.
  bool follow(const Arrival& arrival, Completion when, Random& random) {
    if (pending_.empty() && at_once(when, random)) return true;
    pending_.push_back({{}, arrival, open_group_});
    ++arrivals_;
    return false;
  }

  void commit() { ++open_group_; }
  bool has_arrival() const { return arrivals_ != 0; }

  // Completes all but the `pending_groups` newest committed groups; what is not committed stays pending.
  template <typename Arrive>
  void wait(unsigned pending_groups, Arrive arrive) {
    if (open_group_ <= pending_groups) return;
    size_t done = 0;
    while (done < pending_.size() && pending_[done].group < open_group_ - pending_groups) ++done;
    complete(done, arrive);
  }

  // Completes what the oldest pending arrival follows, and it.
  template <typename Arrive>
  void reach_arrival(Arrive arrive) {
    size_t done = 0;
    while (pending_[done].arrival.mbarrier == nullptr) ++done;
    complete(done + 1, arrive);
  }

  // At a thread's end everything completes, committed or not.
  template <typename Arrive>
  void finish(Arrive arrive) {
    complete(pending_.size(), arrive);
    open_group_ = 0;
  }

 private:
  struct Pending {
    Copy copy;
    Arrival arrival;
    unsigned group;
  };

  static bool at_once(Completion when, Random& random) {
    return when == Completion::earliest || (when == Completion::random && (random.next() & 1));
  }

  template <typename Arrive>
  void complete(size_t count, Arrive arrive) {
    for (size_t i = 0; i < count; ++i) {
      const Pending& next = pending_[i];
      if (next.arrival.mbarrier == nullptr) {
        next.copy.complete();
      } else {
        --arrivals_;
        arrive(next.arrival);
      }
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<long>(count));
  }

  std::vector<Pending> pending_;
  unsigned open_group_ = 0;
  int arrivals_ = 0;
};
