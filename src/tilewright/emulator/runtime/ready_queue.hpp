// The threads of a CTA that can run, in the order in which they will. Owns the order alone: groups come in as the
// schedule says, and under a random one any of them may be next. Under the descending one those that are woken go
// first: a warp runs as far ahead of the others as it can, where otherwise all keep step.
#pragma once

#include <string.h>

#include <vector>

#include "schedule.hpp"

class ReadyQueue {
 public:
  // A thread is in the queue at most once, so `threads` is as long as it gets.
  ReadyQueue(int threads, Order order) : order_(order) {
    size_t places = 1;
    while (places < static_cast<size_t>(threads)) places *= 2;
    ring_.resize(places);
  }

  bool empty() const { return first_ == end_; }
  void clear() { first_ = end_ = 0; }
  void push(int thread) { (order_ == Order::descending ? at(--first_) : at(end_++)) = thread; }

  // `threads` are all that the CTA has, and the queue is empty.
  void push_all(const std::vector<int>& threads) {
    memcpy(ring_.data(), threads.data(), threads.size() * sizeof(int));
    first_ = 0;
    end_ = threads.size();
  }

  int pop(Random& random) {
    if (order_ == Order::random) {
      int& chosen = at(first_ + random.below(end_ - first_));
      int kept = at(first_);
      at(first_) = chosen;
      chosen = kept;
    }
    return at(first_++);
  }

  // The thread that is `ahead` places behind the next one, or -1.
  int peek(size_t ahead) { return ahead < end_ - first_ ? at(first_ + ahead) : -1; }

 private:
  int& at(size_t place) { return ring_[place & (ring_.size() - 1)]; }

  Order order_;
  std::vector<int> ring_;
  size_t first_ = 0, end_ = 0;
};
