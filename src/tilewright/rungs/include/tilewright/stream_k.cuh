// Which steps along k of which tiles a CTA of a persistent grid computes. Tiles that fill whole waves go to one CTA
// each; the steps of the others are dealt out evenly, in one line, so that every CTA has its share of the last wave.
// Expects BM, BN and LEAST_STEPS. Owns who computes what, and where a part of a tile is left for the others.
#pragma once

#include "tilewright/output_tile.cuh"

namespace tilewright {

// What is the same for all CTAs. It lies in shared memory, since registers are for sums.
struct StreamPlan {
  int steps;        // of each tile
  int whole;        // tiles that are one CTA's each; those after them are dealt out
  int shares;       // CTAs that the others' steps are dealt out to
  long long dealt;  // how many steps that are

  // A step is `depth` along k.
  __device__ __forceinline__ void make(const GemmArgs& args, int depth) {
    const int ctas = gridDim.x, tiles = tiles_of(args);
    steps = ceil_div(args.k, depth);
    const int over = tiles % ctas;  // that fill no wave
    // A wave that is nearly full loses less than cutting its tiles would cost.
    whole = steps == 0 || 16ll * over >= 15ll * ctas ? tiles : tiles - over;
    // Few tiles over would each be in many parts: the wave before is dealt out with them.
    if (whole < tiles && whole > 0 && 2ll * over < ctas) whole -= ctas;
    dealt = 1ll * (tiles - whole) * steps;
    shares = static_cast<int>(max(min(dealt / LEAST_STEPS, 1ll * ctas), 1ll));
  }

  // The first of a CTA's dealt steps, and whose such a step is.
  __device__ __forceinline__ long long begin(int cta) const { return dealt * min(cta, shares) / shares; }
  __device__ __forceinline__ int owner(long long step) const {
    return static_cast<int>(((step + 1) * shares - 1) / dealt);
  }

  // The CTAs that have a part of dealt tile number `index`, in the order of k.
  __device__ __forceinline__ int first_cta(int index) const { return owner(1ll * index * steps); }
  __device__ __forceinline__ int last_cta(int index) const { return owner(1ll * (index + 1) * steps - 1); }

  // Where a CTA leaves its part of that tile. It has two places, as its share has two ends that cut a tile.
  __device__ __forceinline__ int slot(int index, int cta) const { return 2 * cta + (begin(cta) < 1ll * index * steps); }
};

// One CTA's work, piece by piece.
class StreamK {
 public:
  int tile, first, last;  // the piece at hand: steps [first, last) of a tile

  __device__ __forceinline__ explicit StreamK(const StreamPlan& plan) : plan_(plan), next_whole_(blockIdx.x) {
    left_ = static_cast<int>(plan.begin(blockIdx.x + 1) - plan.begin(blockIdx.x));
  }

  __device__ __forceinline__ bool has_next() const { return left_ > 0 || next_whole_ < plan_.whole; }

  // On to the next piece, which there is.
  __device__ __forceinline__ void advance() {
    if (left_ > 0) {
      const long long at = plan_.begin(blockIdx.x + 1) - left_;
      const int over = static_cast<int>(at / plan_.steps);
      tile = plan_.whole + over;
      first = static_cast<int>(at - 1ll * over * plan_.steps);
      last = static_cast<int>(min(1ll * plan_.steps, 1ll * first + left_));
      left_ -= last - first;
    } else {
      tile = next_whole_;
      first = 0;
      last = plan_.steps;
      next_whole_ += gridDim.x;
    }
  }

  __device__ __forceinline__ bool is_whole_tile() const { return last - first == plan_.steps; }

 private:
  const StreamPlan& plan_;
  int next_whole_, left_;
};

}  // namespace tilewright
