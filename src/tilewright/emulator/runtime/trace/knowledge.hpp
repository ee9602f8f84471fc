// What somebody knows to have happened: a clock for each actor, up to which everything that it did is known.
// Owns how two such vectors are joined; who knows what is clocks.hpp's.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <vector>

using Actor = uint16_t;
using Clock = uint32_t;
using ClockVector = std::vector<Clock>;  // by actor; those beyond its end are at 0

inline void raise(Clock& clock, Clock to) {
  if (to > clock) clock = to;
}

inline void raise(ClockVector& clocks, Actor actor, Clock to) {
  if (clocks.size() <= actor) clocks.resize(actor + size_t{1});
  raise(clocks[actor], to);
}

inline void raise(ClockVector& clocks, const ClockVector& to) {
  if (clocks.size() < to.size()) clocks.resize(to.size());
  for (size_t i = 0; i < to.size(); ++i) raise(clocks[i], to[i]);
}

inline bool reaches(const ClockVector& clocks, Actor actor, Clock clock) {
  return actor < clocks.size() && clock <= clocks[actor];
}

// What one thread knows, or one object of synchronisation hands on: released by some threads, acquired by others.
struct Knowledge {
  ClockVector happened;
  ClockVector visible;  // of that, what a proxy fence has shown to the asynchronous proxy

  void add(const Knowledge& other) {
    raise(happened, other.happened);
    raise(visible, other.visible);
  }
  void clear() {
    happened.clear();
    visible.clear();
  }
};

// Groups of asynchronous work that one thread has closed, each by its last moment.
class Groups {
 public:
  void clear() { moments_.clear(); }
  void commit(Clock moment) { moments_.push_back(moment); }

  // Up to which moment all is over once at most `pending` of the newest groups are not; 0 for none.
  Clock over(unsigned pending) const { return moments_.size() > pending ? moments_[moments_.size() - 1 - pending] : 0; }

 private:
  std::vector<Clock> moments_;
};
