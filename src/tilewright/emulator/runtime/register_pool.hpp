// setmaxnreg: registers that warps give back and take. Owns how many a thread of each warp has and how many are free.
// A CTA starts with as many for each thread as fit, all of them given out.
#pragma once

#include <vector>

#include "wait.hpp"

class RegisterPool {
 public:
  static constexpr int lanes = 32, group_warps = 4, registers_per_sm = 65536, least = 24, most = 256, step = 8;

  // Before each CTA.
  void reset(int threads) {
    constexpr int most_at_start = 255;
    int share = registers_per_sm / threads;
    int count = (share < most_at_start ? share : most_at_start) / step * step;
    warps_.assign(static_cast<size_t>(threads + lanes - 1) / lanes, {count, {}});
    free_ = 0;
  }

  // The lanes of a warp have come together and call this one after the other; it counts for the warp once.
  void set(Threads& threads, int count, bool acquires, Site site) {
    const char* name = acquires ? "acquire_registers" : "release_registers";
    if (count < least || count > most || count % step != 0)
      threads.refuse(site, "%s<%d>: must be a multiple of %d from %d to %d", name, count, step, least, most);
    Warp& warp = warps_[static_cast<size_t>(threads.current() / lanes)];
    if (acquires ? count < warp.count : count > warp.count)
      threads.refuse(site, "%s<%d>: the warp has %d registers a thread, which is %s", name, count, warp.count,
                     acquires ? "more: release them" : "fewer: acquire them");
    while (acquires && !take(warp, count)) threads.block({WaitKind::registers, static_cast<unsigned>(count), 0, site});
    warp.site = site;
    if (warp.count == count) return;
    free_ += (warp.count - count) * lanes;
    warp.count = count;
    threads.wake(WaitKind::registers, 0, 0, threads.count());
  }

  // The CTA ends: warps of one warpgroup must have moved registers together.
  void finish(Threads& threads) const {
    for (size_t i = 0; i < warps_.size(); ++i) {
      const Warp &first = warps_[i / group_warps * group_warps], &warp = warps_[i];
      if (warp.count != first.count)
        threads.refuse(first.site.file != nullptr ? first.site : warp.site,
                       "registers moved by some warps of a warpgroup only: warp %zu ends with %d a thread and warp %zu "
                       "with %d; all four must come",
                       i / group_warps * group_warps, first.count, i, warp.count);
    }
  }

  // What a wait for `wanted` registers lacks.
  void describe(Report& report, int thread, unsigned wanted) const {
    int lacking = (static_cast<int>(wanted) - warps_[static_cast<size_t>(thread / lanes)].count) * lanes;
    report.add("\"wanted\":%u,\"lacking\":%d,\"free\":%d,\"held\":[", wanted, lacking, free_);
    for (size_t i = 0; i < warps_.size(); ++i) report.add("%s%d", i == 0 ? "" : ",", warps_[i].count);
    report.add("],");
  }

 private:
  struct Warp {
    int count;  // a thread
    Site site;  // of the newest change
  };

  // Whether the warp has `count` a thread, or there are as many as it lacks: then it has them.
  bool take(Warp& warp, int count) {
    int lacking = (count - warp.count) * lanes;
    if (lacking > free_) return false;
    free_ -= lacking;
    warp.count = count;
    return true;
  }

  std::vector<Warp> warps_;
  int free_ = 0;
};
