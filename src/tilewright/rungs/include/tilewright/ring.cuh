// A place in a ring of STAGES stages that have barriers with phases. Expects STAGES.
#pragma once

#include "tilewright/mbarrier.cuh"

namespace tilewright {

// A stage, and the parity of the phases that its barriers are in on this turn.
struct Slot {
  int stage = 0;
  unsigned parity = 0;

  // By `stages`, which divide STAGES.
  __device__ __forceinline__ void advance(int stages = 1) {
    stage += stages;
    if (stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace tilewright
