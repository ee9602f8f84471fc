// CUDA's warp functions for a host compiler: __syncwarp, shuffles, votes and matches, under CUDA's own names.
// Owns what each lane brings and gets; that lanes meet is the runner's.
#pragma once

#include <stdio.h>
#include <string.h>

#include "abi.hpp"

namespace tilewright::emulator {

constexpr int warp_lanes = 32;

// What lane `i` brought, or null if it is not there.
template <typename Record>
inline Record* lane_record(void* const* lanes, int i) {
  return static_cast<Record*>(lanes[i]);
}

inline int lane_index() {
  tilewright_index thread = tilewright_thread_index(), block = tilewright_block_dim();
  return static_cast<int>((thread.x + block.x * (thread.y + block.y * thread.z)) % warp_lanes);
}

template <typename T>
struct Shuffled {
  T value, result;
  int source;
};

// Every lane gets its source's value. From a lane that is not there come 0xFF bytes, as from memory nobody wrote.
template <typename T>
inline void exchange(void* const* lanes) {
  for (int i = 0; i < warp_lanes; ++i) {
    auto* mine = lane_record<Shuffled<T>>(lanes, i);
    if (mine == nullptr) continue;
    auto* source = lane_record<Shuffled<T>>(lanes, mine->source);
    if (source == nullptr)
      memset(&mine->result, 0xFF, sizeof(T));
    else
      mine->result = source->value;
  }
}

// `source` gives, for a lane and the first and last one of its segment, the lane to read.
template <typename T, typename Source>
inline T shuffle(unsigned mask, T value, int width, Source source, const char* name, const char* file, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
  if (width < 1 || width > warp_lanes || (width & (width - 1)) != 0) {
    char text[96];
    snprintf(text, sizeof text, "%s: width=%d: must be a power of two up to 32", name, width);
    tilewright_refuse(text, file, line);
  }
  int lane = lane_index(), first = lane & -width;
  Shuffled<T> mine{value, value, source(lane, first, first + width - 1)};
  tilewright_warp_meet(exchange<T>, &mine, mask, name, file, line);
  return mine.result;
}

struct Vote {
  bool holds;
  unsigned lanes_there, lanes_that_hold;
};

inline void count_votes(void* const* lanes) {
  unsigned there = 0, hold = 0;
  for (int i = 0; i < warp_lanes; ++i) {
    if (lanes[i] == nullptr) continue;
    there |= 1u << i;
    if (lane_record<Vote>(lanes, i)->holds) hold |= 1u << i;
  }
  for (int i = 0; i < warp_lanes; ++i)
    if (auto* mine = lane_record<Vote>(lanes, i)) mine->lanes_there = there, mine->lanes_that_hold = hold;
}

inline Vote vote(unsigned mask, bool holds, const char* name, const char* file, int line) {
  Vote mine{holds, 0, 0};
  tilewright_warp_meet(count_votes, &mine, mask, name, file, line);
  return mine;
}

template <typename T>
struct Matched {
  T value;
  unsigned lanes_there, lanes_alike;
};

template <typename T>
inline void match(void* const* lanes) {
  for (int i = 0; i < warp_lanes; ++i) {
    auto* mine = lane_record<Matched<T>>(lanes, i);
    for (int j = 0; mine != nullptr && j < warp_lanes; ++j) {
      auto* other = lane_record<Matched<T>>(lanes, j);
      if (other == nullptr) continue;
      mine->lanes_there |= 1u << j;
      if (memcmp(&mine->value, &other->value, sizeof(T)) == 0) mine->lanes_alike |= 1u << j;
    }
  }
}

template <typename T>
inline Matched<T> matched(unsigned mask, T value, const char* name, const char* file, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match compares 4 or 8 bytes");
  Matched<T> mine{value, 0, 0};
  tilewright_warp_meet(match<T>, &mine, mask, name, file, line);
  return mine;
}

}  // namespace tilewright::emulator

inline void __syncwarp(unsigned mask = 0xFFFFFFFF, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tilewright_warp_meet(nullptr, nullptr, mask, "__syncwarp", file, line);
}

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  auto from = [=](int, int first, int last) { return first | (source & (last - first)); };
  return tilewright::emulator::shuffle(mask, value, width, from, "__shfl_sync", file, line);
}

template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  int distance = static_cast<int>(delta % warpSize);
  auto from = [=](int lane, int first, int) { return lane - distance >= first ? lane - distance : lane; };
  return tilewright::emulator::shuffle(mask, value, width, from, "__shfl_up_sync", file, line);
}

template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                          const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  int distance = static_cast<int>(delta % warpSize);
  auto from = [=](int lane, int, int last) { return lane + distance <= last ? lane + distance : lane; };
  return tilewright::emulator::shuffle(mask, value, width, from, "__shfl_down_sync", file, line);
}

// A lane may read from an earlier segment than its own, not from a later one.
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  auto from = [=](int lane, int, int last) {
    int other = lane ^ (lane_mask & (warpSize - 1));
    return other <= last ? other : lane;
  };
  return tilewright::emulator::shuffle(mask, value, width, from, "__shfl_xor_sync", file, line);
}

inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  auto vote = tilewright::emulator::vote(mask, predicate != 0, "__all_sync", file, line);
  return vote.lanes_that_hold == vote.lanes_there;
}

inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return tilewright::emulator::vote(mask, predicate != 0, "__any_sync", file, line).lanes_that_hold != 0;
}

inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return tilewright::emulator::vote(mask, predicate != 0, "__ballot_sync", file, line).lanes_that_hold;
}

template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  return tilewright::emulator::matched(mask, value, "__match_any_sync", file, line).lanes_alike;
}

template <typename T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all_alike, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  auto match = tilewright::emulator::matched(mask, value, "__match_all_sync", file, line);
  *all_alike = match.lanes_alike == match.lanes_there;
  return *all_alike ? match.lanes_there : 0;
}
