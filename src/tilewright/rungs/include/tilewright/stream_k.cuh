// Which steps along k of which tiles a CTA of a persistent grid computes. Tiles that fill whole waves go to one CTA
// each; the steps of the others are dealt out evenly, in one line, so that every CTA has its share of the last wave.
// Expects BM, BN and LEAST_STEPS. Owns who computes what, and where a part of a tile is left for the others.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

class StreamK {
 public:
  int tile, first, last;  // the piece at hand: steps [first, last) of a tile

  // A step is `depth` along k.
  __device__ __forceinline__ StreamK(const GemmArgs& args, int depth) : next_whole_(blockIdx.x) {
    const int ctas = gridDim.x, tiles = ((args.m - 1) / BM + 1) * ((args.n - 1) / BN + 1) * args.batch;
    steps_ = args.k / depth + (args.k % depth != 0);
    whole_ = steps_ == 0 ? tiles : tiles / ctas * ctas;
    // Few tiles over would each be in many pieces: the wave before is dealt out with them.
    if (whole_ > 0 && whole_ < tiles && 2ll * (tiles - whole_) < ctas) whole_ -= ctas;
    dealt_ = 1ll * (tiles - whole_) * steps_;
    shares_ = static_cast<int>(max(min(dealt_ / LEAST_STEPS, 1ll * ctas), 1ll));
    at_ = begin(min(static_cast<int>(blockIdx.x), shares_));
    end_ = begin(min(static_cast<int>(blockIdx.x) + 1, shares_));
  }

  __device__ __forceinline__ bool has_next() const { return at_ < end_ || next_whole_ < whole_; }

  // On to the next piece, which there is.
  __device__ __forceinline__ void advance() {
    if (at_ < end_) {
      const int over = static_cast<int>(at_ / steps_);
      tile = whole_ + over;
      first = static_cast<int>(at_ - 1ll * over * steps_);
      last = static_cast<int>(min(1ll * steps_, first + end_ - at_));
      at_ += last - first;
    } else {
      tile = next_whole_;
      first = 0;
      last = steps_;
      next_whole_ += gridDim.x;
    }
  }

  __device__ __forceinline__ bool is_whole_tile() const { return last - first == steps_; }

  // Of a tile in parts: its number among such tiles, and the CTAs that have a part of it, in the order of k.
  __device__ __forceinline__ int number() const { return tile - whole_; }
  __device__ __forceinline__ int first_cta() const { return owner(1ll * number() * steps_); }
  __device__ __forceinline__ int last_cta() const { return owner(1ll * (number() + 1) * steps_ - 1); }

  // Where a CTA leaves its part of this tile. It has two places, as its share has two ends that cut a tile.
  __device__ __forceinline__ int slot(int cta) const { return 2 * cta + (begin(cta) < 1ll * number() * steps_); }

 private:
  // The first of a CTA's dealt steps, and whose such a step is.
  __device__ __forceinline__ long long begin(int cta) const { return dealt_ * cta / shares_; }
  __device__ __forceinline__ int owner(long long step) const {
    return static_cast<int>(((step + 1) * shares_ - 1) / dealt_);
  }

  int steps_, whole_, shares_, next_whole_;
  long long dealt_, at_, end_;
};

}  // namespace tilewright
