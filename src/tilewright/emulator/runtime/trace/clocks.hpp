// What is known to have happened before what, among the threads of a CTA and what runs beside them: vector clocks. A
// thread's cp.async copies are an actor of their own, since they run beside it until it waits; async_actors.hpp has the
// others of that kind.
// Almost all order comes from barriers for everyone, so what all threads know is kept once and only what a thread
// knows beyond that is its own.
#pragma once

#include "knowledge.hpp"

// Threads that do something together: each of them has to know what it must come after.
struct Team {
  int first, count;
};

class Clocks {
 public:
  explicit Clocks(int threads)
      : threads_(static_cast<size_t>(threads)),
        now_(2 * threads_),
        waited_(now_.size()),
        groups_(threads_),
        own_(threads_) {}

  // Nothing has happened. The actors stay.
  void start() {
    now_.assign(now_.size(), 1);
    waited_.assign(now_.size(), 0);
    common_.happened.assign(now_.size(), 0);
    common_.visible.clear();
    for (Knowledge& own : own_) own.clear();
    for (Groups& groups : groups_) groups.clear();
  }

  Actor copies_of(int thread) const { return static_cast<Actor>(threads_ + static_cast<size_t>(thread)); }

  // One more that acts in the name of `thread` and beside it.
  Actor add_actor(int thread) {
    now_.push_back(1);
    waited_.push_back(0);
    common_.happened.push_back(0);
    issuers_.push_back(thread);
    return static_cast<Actor>(now_.size() - 1);
  }
  void set_issuer(Actor actor, int thread) { issuers_[actor - 2 * threads_] = thread; }

  bool is_asynchronous(Actor actor) const { return actor >= threads_; }
  int thread_of(Actor actor) const {
    return actor < 2 * threads_ ? static_cast<int>(actor % threads_) : issuers_[actor - 2 * threads_];
  }
  Clock now(Actor actor) const { return now_[actor]; }

  // Whether what `actor` did at `clock` happened before what `thread` does now.
  bool knows(int thread, Actor actor, Clock clock) const {
    auto self = static_cast<size_t>(thread);
    if (actor == self || clock <= common_.happened[actor]) return true;
    if (actor == copies_of(thread) && clock <= waited_[actor]) return true;
    return reaches(own_[self].happened, actor, clock);
  }
  bool all_know(Team team, Actor actor, Clock clock) const {
    for (int thread = team.first; thread < team.first + team.count; ++thread)
      if (!knows(thread, actor, clock)) return false;
    return true;
  }

  // Whether what `actor` stored at `clock` is seen by what the threads have the asynchronous proxy do now.
  bool all_show(Team team, Actor actor, Clock clock) const {
    if (reaches(common_.visible, actor, clock)) return true;
    for (int thread = team.first; thread < team.first + team.count; ++thread)
      if (!reaches(own_[static_cast<size_t>(thread)].visible, actor, clock)) return false;
    return true;
  }

  // Whether any thread has waited for what an asynchronous actor did.
  bool waited(Actor actor, Clock clock) const { return !is_asynchronous(actor) || clock <= waited_[actor]; }

  // All threads of the CTA meet.
  void barrier() {
    ClockVector& common = common_.happened;
    for (size_t i = 0; i < threads_; ++i) {
      common[i] = now_[i]++;
      raise(common[threads_ + i], waited_[threads_ + i]);
    }
    for (Knowledge& own : own_) {
      for (size_t i = threads_; i < own.happened.size(); ++i) raise(common[i], own.happened[i]);
      raise(common_.visible, own.visible);
      own.clear();
    }
  }

  void release(int thread, Knowledge& into) {
    auto self = static_cast<size_t>(thread);
    into.add(common_);
    into.add(own_[self]);
    raise(into.happened[copies_of(thread)], waited_[copies_of(thread)]);
    raise(into.happened[self], now_[self]++);
  }

  void acquire(int thread, const Knowledge& from) { own_[static_cast<size_t>(thread)].add(from); }

  // What the thread knows to have happened is from now on seen by the asynchronous proxy.
  void fence_proxy(int thread) {
    Knowledge known;
    release(thread, known);
    raise(own_[static_cast<size_t>(thread)].visible, known.happened);
  }

  // Closes what an actor has done so far, as a moment of its own.
  Clock end_moment(Actor actor) { return now_[actor]++; }

  // The thread has waited until everything that an asynchronous actor did up to `moment` was over.
  void learn(int thread, Actor actor, Clock moment) {
    raise(own_[static_cast<size_t>(thread)].happened, actor, moment);
    note_waited(actor, moment);
  }
  void note_waited(Actor actor, Clock moment) { raise(waited_[actor], moment); }

  void commit_copies(int thread) { groups_[static_cast<size_t>(thread)].commit(end_moment(copies_of(thread))); }
  // All but the `pending` newest committed groups of the thread's copies are complete.
  void wait_copies(int thread, unsigned pending) {
    note_waited(copies_of(thread), groups_[static_cast<size_t>(thread)].over(pending));
  }

 private:
  size_t threads_;
  std::vector<Clock> now_;      // by actor
  std::vector<Clock> waited_;   // by actor: the newest moment that a thread has waited for
  std::vector<int> issuers_;    // by actor, from 2 · threads_ on: in whose name it acts
  std::vector<Groups> groups_;  // by thread, of its copies
  Knowledge common_;            // what every thread knows
  std::vector<Knowledge> own_;  // by thread: what it knows beyond that
};
