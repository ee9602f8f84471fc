// The registers that wgmma adds to, one stretch for each thread of a warpgroup, and a checksum of each thread's from
// the last moment at which the rules let it change them. Owns whether they have changed since; when they may is
// warpgroups.hpp's.
#pragma once

#include <stdint.h>
#include <string.h>

class Accumulators {
 public:
  static constexpr int threads = 128;
  using Registers = float* [threads];

  Accumulators(const Registers& d, int count) : count_(count) {
    memcpy(d_, d, sizeof d_);
    note_all();
  }

  bool are(const Registers& d, int count) const { return count == count_ && memcmp(d, d_, sizeof d_) == 0; }
  bool overlap(const Registers& d, int count) const { return d_[0] < d[0] + count && d[0] < d_[0] + count_; }

  const Registers& registers() const { return d_; }
  int columns() const { return 2 * count_; }

  // What the thread holds now is as it should be.
  void note(int member) { checks_[member] = check_of(d_[member]); }
  void note_all() {
    for (int member = 0; member < threads; ++member) note(member);
  }
  bool are_as_noted(int member) const { return check_of(d_[member]) == checks_[member]; }

  uint64_t last = 0;  // products issued once the newest of these was; 0 for none

 private:
  // Each bit pattern times an odd number of its own.
  uint32_t check_of(const float* d) const {
    using Words = uint32_t __attribute__((vector_size(16)));
    constexpr int words = sizeof(Words) / sizeof(float);
    Words sum{}, factors{0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F}, registers;
    for (int i = 0; i < count_; i += words, factors += 0x61C88646) {
      memcpy(&registers, d + i, sizeof registers);
      sum += registers * factors;
    }
    return sum[0] + sum[1] + sum[2] + sum[3];
  }

  Registers d_;
  int count_;  // a thread
  uint32_t checks_[threads];
};
