// Follows what a CTA's threads do to memory and to each other, and has each access judged as it is made. Owns what
// hands on knowledge: barriers, flags, mbarriers, waits. Order comes from these and not from the schedule, so a race is
// found whichever of its two sides ran first. One checker sees all CTAs, one at a time, on one OS thread.
#pragma once

#include <unordered_map>

#include "../range.hpp"
#include "async_actors.hpp"
#include "judge.hpp"

class Checker {
 public:
  Checker(const TraceRequest& request, int threads)
      : clocks_(threads), actors_(clocks_, threads), judge_(request, clocks_) {}

  void begin_cta(uint32_t cta, const Arrays& arrays) {
    clocks_.start();
    actors_.start();
    judge_.begin_cta(cta, arrays);
    released_.clear();
    phases_.clear();
  }

  void barrier() {
    clocks_.barrier();
    judge_.next_phase();
  }

  __attribute__((noinline)) void access(const Arrays& arrays, int thread, const Stretch& stretch) {
    Actor actor = by_copy(stretch.kind) ? clocks_.copies_of(thread) : static_cast<Actor>(thread);
    judge_.access(arrays, {thread, 1}, actor, stretch);
  }

  void index(const char* type, long index, int thread, uint32_t site) { judge_.index(type, index, thread, site); }

  // An atomic access orders besides: what was released at the address happened before what comes after acquiring it.
  void synchronise(const Arrays& arrays, int thread, uintptr_t address, bool acquires, bool releases) {
    Knowledge& object = released_[address];
    Space space;
    if (acquires) {
      clocks_.acquire(thread, object);
      if (arrays.classify(address, space) && space == Space::global) judge_.synchronise();
    }
    if (releases) clocks_.release(thread, object);
  }

  // Lanes of one warp, from thread `first` on.
  void meet(int first, uint32_t lanes) {
    Knowledge met;
    for (uint32_t left = lanes; left != 0; left &= left - 1) clocks_.release(first + __builtin_ctz(left), met);
    for (uint32_t left = lanes; left != 0; left &= left - 1) clocks_.acquire(first + __builtin_ctz(left), met);
  }

  void init_mbarrier(const Arrays& arrays, uintptr_t object, int thread, uint32_t site) {
    phases_.erase(object);
    access_smem(arrays, {thread, 1}, static_cast<Actor>(thread), {object, mbarrier_bytes}, Kind::mbarrier_init, site);
  }
  void use_mbarrier(const Arrays& arrays, uintptr_t object, int thread, uint32_t site) {
    access_smem(arrays, {thread, 1}, static_cast<Actor>(thread), {object, mbarrier_bytes}, Kind::mbarrier_use, site);
  }
  void arrive(uintptr_t object, int thread) { clocks_.release(thread, phases_[object].arriving); }
  void arrive_copies(uintptr_t object, int thread, Clock copied) {
    raise(phases_[object].arriving.happened, clocks_.copies_of(thread), copied);
  }
  void complete(uintptr_t object, bool accumulates) {
    Phase& phase = phases_[object];
    phase.complete = phase.arriving;
    if (!accumulates) phase.arriving.clear();
  }
  void leave(uintptr_t object, int thread) {
    const Knowledge& complete = phases_[object].complete;
    clocks_.acquire(thread, complete);
    actors_.wait_loads(object, complete);
  }

  Clock follow_copies(int thread) { return clocks_.end_moment(clocks_.copies_of(thread)); }
  void commit_copies(int thread) { clocks_.commit_copies(thread); }
  void wait_copies(int thread, unsigned pending) { clocks_.wait_copies(thread, pending); }

  void proxy_fence(int thread) { clocks_.fence_proxy(thread); }

  // A TMA load: the box it fills, with the mbarrier that counts it, and each row that it reads.
  void load_box(const Arrays& arrays, int thread, uintptr_t mbarrier, const Range& smem, uint32_t site) {
    Actor loads = actors_.loads(mbarrier, thread);
    access_smem(arrays, {thread, 1}, loads, {mbarrier, mbarrier_bytes}, Kind::tma_count, site);
    access_smem(arrays, {thread, 1}, loads, smem, Kind::tma_fill, site);
  }
  void load_row(const Arrays& arrays, int thread, uintptr_t mbarrier, const Stretch& row) {
    judge_.access(arrays, {thread, 1}, actors_.loads(mbarrier, thread), row);
  }
  Clock issue_load(uintptr_t mbarrier) { return actors_.issue_load(mbarrier); }
  void complete_load(uintptr_t mbarrier, Clock moment) {
    actors_.complete_load(mbarrier, moment, phases_[mbarrier].arriving);
  }

  // A TMA store: the box it reads, and each row that it writes.
  void store_box(const Arrays& arrays, int thread, const Range& smem, uint32_t site) {
    access_smem(arrays, {thread, 1}, actors_.store_reads(thread), smem, Kind::tma_read, site);
  }
  void store_row(const Arrays& arrays, int thread, const Stretch& row) {
    judge_.access(arrays, {thread, 1}, actors_.store_writes(thread), row);
  }
  void commit_stores(int thread) { actors_.commit_stores(thread); }
  void wait_stores(int thread, unsigned pending, bool reads_only) { actors_.wait_stores(thread, pending, reads_only); }

  // A product of the warpgroup that starts with thread `first` reads its operands.
  void multiply(const Arrays& arrays, int first, const Range* ranges, size_t count, uint32_t site) {
    Actor products = actors_.products(first);
    Team warpgroup{first, AsyncActors::warpgroup_threads};
    for (size_t i = 0; i < count; ++i) access_smem(arrays, warpgroup, products, ranges[i], Kind::wgmma_read, site);
  }
  void issue_product(int first) { actors_.issue_product(first); }
  void commit_products(int thread) { actors_.commit_products(thread); }
  void wait_products(int thread, unsigned pending) { actors_.wait_products(thread, pending); }

 private:
  static constexpr unsigned mbarrier_bytes = 8;

  struct Phase {
    Knowledge arriving, complete;
  };

  void access_smem(const Arrays& arrays, Team team, Actor actor, const Range& range, Kind kind, uint32_t site) {
    Space space;
    if (arrays.classify(range.address, space))
      judge_.access(arrays, team, actor, {range.address, range.bytes, site, kind, space});
  }

  Clocks clocks_;
  AsyncActors actors_;
  Judge judge_;
  std::unordered_map<uintptr_t, Knowledge> released_;
  std::unordered_map<uintptr_t, Phase> phases_;  // by number of a named barrier or address of an mbarrier
};
