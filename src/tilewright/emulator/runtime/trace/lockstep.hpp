// From the logs of a warp's lanes to its instructions. The lanes ran one after the other; the hardware runs them
// together, so their logs are walked side by side: of the lanes' next accesses, those furthest back in the code form
// one instruction and the others wait for them, as lanes that skip a branch wait where it ends.
#pragma once

#include <stddef.h>

#include <vector>

#include "access.hpp"
#include "banks.hpp"

using Log = std::vector<Access>;

// `emit(const Access* const* by_lane, uint32_t active, const Access& any)` for each instruction of lanes' `logs`.
template <typename Emit>
void walk_warp(const Log* logs, int lanes, Emit emit) {
  size_t next[warp_lanes] = {};
  for (;;) {
    uint64_t step = UINT64_MAX;
    for (int lane = 0; lane < lanes; ++lane)
      if (next[lane] < logs[lane].size() && logs[lane][next[lane]].step() < step) step = logs[lane][next[lane]].step();
    if (step == UINT64_MAX) return;
    const Access* by_lane[warp_lanes];
    const Access* any = nullptr;
    uint32_t active = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      if (next[lane] == logs[lane].size() || logs[lane][next[lane]].step() != step) continue;
      any = by_lane[lane] = &logs[lane][next[lane]++];
      active |= uint32_t{1} << lane;
    }
    emit(by_lane, active, *any);
  }
}
