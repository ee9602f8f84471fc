// From the logs of a warp's lanes to its instructions. The lanes ran one after the other; the hardware runs them
// together, so their logs are walked side by side: of the lanes' next accesses, those furthest back in the code form
// one instruction and the others wait for them, as lanes that skip a branch wait where it ends.
#pragma once

#include <stddef.h>

#include <utility>
#include <vector>

#include "access.hpp"
#include "banks.hpp"

using Log = std::vector<Access>;

// `emit(const Access* const* by_lane, uint32_t active, const Access& any)` for each instruction of lanes' `logs`.
template <typename Emit>
void walk_warp(Log* logs, int lanes, Emit emit) {
  const Access end{0, UINT32_MAX, 0, Kind::load, Space::global};
  const Access* next[warp_lanes];
  for (int lane = 0; lane < lanes; ++lane) {
    logs[lane].push_back(end);
    next[lane] = logs[lane].data();
  }
  for (;;) {
    uint64_t steps[warp_lanes], first = UINT64_MAX;
    for (int lane = 0; lane < lanes; ++lane) {
      steps[lane] = next[lane]->step();
      if (steps[lane] < first) first = steps[lane];
    }
    if (first == end.step()) return;
    const Access* by_lane[warp_lanes];
    uint32_t active = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      bool takes_part = steps[lane] == first;
      by_lane[lane] = next[lane];
      next[lane] += takes_part;
      active |= uint32_t{takes_part} << lane;
    }
    emit(by_lane, active, *by_lane[__builtin_ctz(active)]);
  }
}
