// Warp collectives: lanes that must come together before any of them goes on. Each lane brings its arguments, the
// last one to come computes for all. Owns who is there and who is missing; what is computed is the kernel header's.
#pragma once

#include <vector>

#include "wait.hpp"

using WarpCompute = void (*)(void* const* lanes);

struct WarpCall {
  WarpCompute compute;  // null for __syncwarp, which alone orders what the lanes do to memory
  const char* name;
  unsigned mask;
  Site site;

  bool same_place(const WarpCall& other) const { return compute == other.compute && site.line == other.site.line; }
};

class Warps {
 public:
  static constexpr int lanes = 32;

  // Before each CTA: every thread alive, nobody waiting.
  void reset(int threads) {
    warps_.assign(static_cast<size_t>(threads + lanes - 1) / lanes, {});
    for (int i = 0; i < threads; ++i) warp_of(i).alive |= 1u << (i % lanes);
  }

  // The current thread joins the call with `mine`; returns when every lane of the mask that is alive has. Lanes that
  // are not there have a null pointer in the array that `compute` gets.
  void meet(Threads& threads, const WarpCall& call, void* mine) {
    int thread = threads.current(), lane = thread % lanes;
    Warp& warp = warp_of(thread);
    if (!(call.mask >> lane & 1))
      threads.refuse(call.site, "%s: lane %d is not in its own mask 0x%08x", call.name, lane, call.mask);
    Meeting& meeting = warp.meetings[join(threads, warp, call)];
    meeting.mine[lane] = mine;
    meeting.arrived |= 1u << lane;
    if (!complete(threads, warp, meeting, thread - lane)) threads.block({WaitKind::warp, 0, meeting.id, call.site});
  }

  // A thread that has ended is no longer waited for.
  void leave(Threads& threads, int thread) {
    Warp& warp = warp_of(thread);
    warp.alive &= ~(1u << (thread % lanes));
    for (size_t i = 0; i < warp.meetings.size();)
      if (!complete(threads, warp, warp.meetings[i], thread - thread % lanes)) ++i;
  }

  // The call whose lanes a wait is for, and which of them are missing.
  void describe(Report& report, int thread, uintptr_t id) const {
    const Warp& warp = warps_[static_cast<size_t>(thread / lanes)];
    for (const Meeting& meeting : warp.meetings) {
      if (meeting.id != id) continue;
      report.add("\"name\":\"%s\",\"warp\":%d,", meeting.call.name, thread / lanes);
      report.add("\"mask\":%u,\"missing\":%u,", meeting.call.mask, meeting.call.mask & warp.alive & ~meeting.arrived);
    }
  }

 private:
  struct Meeting {
    WarpCall call;
    uintptr_t id;
    unsigned arrived = 0;
    void* mine[lanes] = {};
  };
  struct Warp {
    unsigned alive = 0;
    std::vector<Meeting> meetings;  // one, unless the warp has split into groups
  };

  Warp& warp_of(int thread) { return warps_[static_cast<size_t>(thread / lanes)]; }

  // Which meeting of the warp is this call's: the open one with its mask, or a new one.
  size_t join(Threads& threads, Warp& warp, const WarpCall& call) {
    for (size_t i = 0; i < warp.meetings.size(); ++i) {
      const WarpCall& open = warp.meetings[i].call;
      if (open.mask == call.mask && !open.same_place(call)) refuse(threads, call, open, "at different lines");
      if (open.mask != call.mask && open.mask & call.mask && open.same_place(call))
        refuse(threads, call, open, "with different masks");
      if (open.mask == call.mask) return i;
    }
    warp.meetings.push_back({call, ++last_id_});
    return warp.meetings.size() - 1;
  }

  static void refuse(Threads& threads, const WarpCall& call, const WarpCall& open, const char* how) {
    threads.refuse(call.site, "lanes of one warp meet %s: %s with mask 0x%08x here, %s with mask 0x%08x at line %d",
                   how, call.name, call.mask, open.name, open.mask, open.site.line);
  }

  // Computes for all and wakes them if nobody is missing; the meeting is then gone.
  bool complete(Threads& threads, Warp& warp, Meeting& meeting, int first) {
    if (meeting.call.mask & warp.alive & ~meeting.arrived) return false;
    Meeting done = meeting;
    warp.meetings.erase(warp.meetings.begin() + (&meeting - warp.meetings.data()));
    threads.met(first, done.arrived, (warp.alive & ~done.arrived) == 0, done.call.compute == nullptr);
    if (done.call.compute != nullptr) {
      threads.act_at(done.call.site);
      done.call.compute(done.mine);
      threads.act_at({});
    }
    int last = first + lanes < threads.count() ? first + lanes : threads.count();
    threads.wake(WaitKind::warp, done.id, first, last);
    return true;
  }

  std::vector<Warp> warps_;
  uintptr_t last_id_ = 0;
};
