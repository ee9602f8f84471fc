// Judges each access as it is made: where it lies, whether what it reads was written, whether it is ordered after what
// others did to the same bytes, and whether the asynchronous proxy sees what threads have stored. Order comes from
// clocks.hpp and not from the schedule, so a race is found whichever of its two sides ran first. One checker sees all
// CTAs, one at a time, on one OS thread.
#pragma once

#include <unordered_map>

#include "../range.hpp"
#include "async_actors.hpp"
#include "places.hpp"

class Checker {
 public:
  Checker(const TraceRequest& request, int threads)
      : findings_(request.output_fd), places_(request, findings_), clocks_(threads), actors_(clocks_, threads) {}

  void begin_cta(uint32_t cta, const Arrays& arrays) {
    cta_ = cta;
    synchronised_ = false;
    clocks_.start();
    actors_.start();
    next_phase();
    late_readers_.clear();
    places_.begin_cta(arrays);
    released_.clear();
    phases_.clear();
  }

  void barrier() {
    clocks_.barrier();
    next_phase();
  }

  __attribute__((noinline)) void access(const Arrays& arrays, int thread, const Stretch& stretch) {
    Actor actor = by_copy(stretch.kind) ? clocks_.copies_of(thread) : static_cast<Actor>(thread);
    judge(arrays, {thread, 1}, actor, stretch);
  }

  void index(const char* type, long index, int thread, uint32_t site) {
    findings_.tell_index(type, index, {thread, cta_, site, Kind::load});
  }

  // An atomic access orders besides: what was released at the address happened before what comes after acquiring it.
  void synchronise(const Arrays& arrays, int thread, uintptr_t address, bool acquires, bool releases) {
    Knowledge& object = released_[address];
    Space space;
    if (acquires) {
      clocks_.acquire(thread, object);
      synchronised_ |= arrays.classify(address, space) && space == Space::global;
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
    judge(arrays, {thread, 1}, actors_.loads(mbarrier, thread), row);
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
    judge(arrays, {thread, 1}, actors_.store_writes(thread), row);
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

  // An access, and who has to know what it comes after.
  struct Judged {
    Team team;
    Moment now;
    ArrayId array;
    long offset;  // of the cell that is looked at
    unsigned bytes;
    Deed deed;
    Moment ordered;  // one that was found to come before
  };

  void next_phase() {
    ++phase_;
    readers_.clear();
  }

  void access_smem(const Arrays& arrays, Team team, Actor actor, const Range& range, Kind kind, uint32_t site) {
    Space space;
    if (arrays.classify(range.address, space))
      judge(arrays, team, actor, {range.address, range.bytes, site, kind, space});
  }

  void judge(const Arrays& arrays, Team team, Actor actor, const Stretch& stretch) {
    ArrayId array = arrays.find(stretch.space, stretch.address);
    Judged it{team,          {clocks_.now(actor), stretch.site, actor, stretch.kind}, array, 0,
              stretch.bytes, {team.first, cta_, stretch.site, stretch.kind},          {}};
    places_.each_cell(arrays, array, stretch, it.deed, [&](Cell& cell, long offset) {
      it.offset = offset;
      visit(cell, it);
    });
  }

  void visit(Cell& cell, Judged& it) {
    if (cell.cta != cta_ + 1) take_over(cell, it);
    if (cell.write.clock != 0)
      check_order(cell.write, it);
    else if (it.array.space != Space::global && !writes(it.now.kind))
      findings_.tell(Flaw::uninitialised, it.array, it.offset, it.bytes, it.deed);
    if (cell.phase != phase_) {
      cell.phase = phase_;
      cell.readers = 0;
    }
    if (writes(it.now.kind))
      overwrite(cell, it);
    else if (clocks_.is_asynchronous(it.now.actor))
      late_readers_.add_last(cell.late_readers, it.now);
    else
      readers_.add(cell.readers, it.now);
  }

  void overwrite(Cell& cell, Judged& it) {
    auto check = [&](const Moment& reader) { check_order(reader, it); };
    readers_.each(cell.readers, check);
    late_readers_.each(cell.late_readers, check);
    cell.readers = 0;
    late_readers_.drop(cell.late_readers);
    cell.write = it.now;
  }

  void check_order(const Moment& before, Judged& it) {
    if (before.actor == it.ordered.actor && before.clock == it.ordered.clock && before.kind == it.ordered.kind) return;
    Flaw flaw = Flaw::race;
    if (clocks_.all_know(it.team, before.actor, before.clock)) {
      if (is_visible(before, it)) {
        it.ordered = before;
        return;
      }
      flaw = Flaw::proxy;
    } else if (is_atomic(before.kind) && is_atomic(it.now.kind)) {
      return;
    }
    Deed first{clocks_.thread_of(before.actor), cta_, before.site, before.kind};
    findings_.tell_pair(flaw, it.array, it.offset, it.bytes, first, it.deed,
                        clocks_.waited(before.actor, before.clock));
  }

  // Whether a write that happened before is seen where it is read or written now. The fence there is covers shared
  // memory alone.
  bool is_visible(const Moment& before, const Judged& it) const {
    if (!by_async_proxy(it.now.kind) || by_async_proxy(before.kind) || !writes(before.kind)) return true;
    return it.array.space != Space::global && clocks_.all_show(it.team, before.actor, before.clock);
  }

  // Memory that another CTA touched last: no two CTAs are ordered, unless this one has acquired something
  // in global memory.
  void take_over(Cell& cell, const Judged& it) {
    const Moment& before = cell.write;
    bool both_atomic = is_atomic(before.kind) && is_atomic(it.now.kind);
    if (cell.cta != 0 && before.clock != 0 && !both_atomic && !synchronised_) {
      Deed first{clocks_.thread_of(before.actor), cell.cta - 1, before.site, before.kind};
      findings_.tell_pair(Flaw::race, it.array, it.offset, it.bytes, first, it.deed, true);
    }
    cell = Cell{};
    cell.cta = cta_ + 1;
  }

  Findings findings_;
  Places places_;
  Clocks clocks_;
  AsyncActors actors_;
  Readers readers_, late_readers_;
  std::unordered_map<uintptr_t, Knowledge> released_;
  std::unordered_map<uintptr_t, Phase> phases_;  // by number of a named barrier or address of an mbarrier
  uint32_t cta_ = 0, phase_ = 0;
  bool synchronised_ = false;
};
