// What is known to have happened before what, among the threads of a CTA and their asynchronous copies: vector
// clocks. A thread's copies are an actor of their own, since they run beside it until it waits.
// Almost all order comes from barriers for everyone, so what all threads know is kept once and only what a thread
// knows beyond that is its own.
#pragma once

#include <stdint.h>

#include <vector>

using Actor = uint16_t;
using Clock = uint32_t;

// What one object of synchronisation hands on: released by some threads, acquired by others.
using Knowledge = std::vector<Clock>;

class Clocks {
 public:
  explicit Clocks(int threads) : threads_(static_cast<size_t>(threads)), own_(threads_), commits_(threads_) {}

  void start() {
    now_.assign(2 * threads_, 1);
    completed_.assign(threads_, 0);
    common_.assign(2 * threads_, 0);
    for (Knowledge& own : own_) own.clear();
    for (std::vector<Clock>& commits : commits_) commits.clear();
  }

  Actor copies_of(int thread) const { return static_cast<Actor>(threads_ + static_cast<size_t>(thread)); }
  bool is_copy(Actor actor) const { return actor >= threads_; }
  int thread_of(Actor actor) const { return static_cast<int>(actor % threads_); }
  Clock now(Actor actor) const { return now_[actor]; }

  // Whether what `actor` did at `clock` happened before what `thread` does now.
  bool knows(int thread, Actor actor, Clock clock) const {
    auto self = static_cast<size_t>(thread);
    if (actor == self || clock <= common_[actor]) return true;
    if (actor == copies_of(thread) && clock <= completed_[self]) return true;
    const Knowledge& own = own_[self];
    return !own.empty() && clock <= own[actor];
  }

  // Whether the thread that issued a copy has waited for it.
  bool waited(Actor copies, Clock clock) const { return clock <= completed_[copies % threads_]; }

  // All threads of the CTA meet.
  void barrier() {
    for (size_t i = 0; i < threads_; ++i) {
      common_[i] = now_[i]++;
      raise(common_[threads_ + i], completed_[i]);
    }
    for (Knowledge& own : own_) {
      for (size_t i = threads_; i < own.size(); ++i) raise(common_[i], own[i]);
      own.clear();
    }
  }

  void release(int thread, Knowledge& into) {
    auto self = static_cast<size_t>(thread);
    into.resize(2 * threads_);
    for (size_t i = 0; i < into.size(); ++i) {
      raise(into[i], common_[i]);
      if (!own_[self].empty()) raise(into[i], own_[self][i]);
    }
    raise(into[copies_of(thread)], completed_[self]);
    raise(into[self], now_[self]++);
  }

  void acquire(int thread, const Knowledge& from) {
    if (from.empty()) return;
    Knowledge& own = own_[static_cast<size_t>(thread)];
    own.resize(2 * threads_);
    for (size_t i = 0; i < from.size(); ++i) raise(own[i], from[i]);
  }

  // The copies that the thread has issued so far, as a moment of theirs that ends with it.
  Clock follow_copies(int thread) { return now_[copies_of(thread)]++; }
  void release_copies(int thread, Clock copied, Knowledge& into) {
    into.resize(2 * threads_);
    raise(into[copies_of(thread)], copied);
  }

  void commit_copies(int thread) { commits_[static_cast<size_t>(thread)].push_back(follow_copies(thread)); }

  // All but the `pending` newest committed groups of the thread's copies are complete.
  void wait_copies(int thread, unsigned pending) {
    auto self = static_cast<size_t>(thread);
    const std::vector<Clock>& commits = commits_[self];
    if (commits.size() > pending) raise(completed_[self], commits[commits.size() - 1 - pending]);
  }

 private:
  static void raise(Clock& clock, Clock to) {
    if (to > clock) clock = to;
  }

  size_t threads_;
  std::vector<Clock> now_;                   // by actor
  std::vector<Clock> completed_;             // by thread: the newest group of copies it has waited for
  std::vector<Clock> common_;                // by actor: what every thread knows
  std::vector<std::vector<Clock>> commits_;  // by thread: when it closed its groups of copies
  std::vector<Knowledge> own_;               // by thread: what it knows beyond that; empty for nothing
};
