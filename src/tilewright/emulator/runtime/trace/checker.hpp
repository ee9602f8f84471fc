// Judges each access as it is made: where it lies, whether what it reads was written, and whether it is ordered after
// what others did to the same bytes. Order comes from clocks.hpp and not from the schedule, so a race is found
// whichever of its two sides ran first. One checker sees all CTAs, one at a time, on one OS thread.
#pragma once

#include <unordered_map>

#include "findings.hpp"

class Checker {
 public:
  Checker(const TraceRequest& request, int threads)
      : findings_(request.output_fd), clocks_(threads), globals_(request.globals.size()) {}

  void begin_cta(uint32_t cta, const Arrays& arrays) {
    cta_ = cta;
    synchronised_ = false;
    clocks_.start();
    next_phase();
    static_.reset(arrays.static_smem().bytes);
    dynamic_.reset(arrays.dynamic_smem().bytes);
    released_.clear();
    phases_.clear();
  }

  void barrier() {
    clocks_.barrier();
    next_phase();
  }

  __attribute__((noinline)) void access(const Arrays& arrays, int thread, const Access& access) {
    ArrayId array = arrays.find(access.space, access.address);
    auto offset = static_cast<long>(access.address - arrays.start(array));
    if (!check_place(arrays, array, offset, thread, access)) return;
    Shadow* shadow = shadow_of(arrays, array);
    if (shadow == nullptr) return;
    Actor actor = by_copy(access.kind) ? clocks_.copies_of(thread) : static_cast<Actor>(thread);
    Moment now{clocks_.now(actor), access.site, actor, access.kind};
    uintptr_t base = array.space == Space::shared_static ? arrays.static_smem().start : arrays.start(array);
    auto ahead = static_cast<long>(arrays.start(array) - base);
    shadow->each(access.address - base, access.bytes, [&](Cell& cell, size_t at) {
      visit(cell, now, thread, {array, static_cast<long>(at) - ahead, access.bytes});
    });
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

  void forget(uintptr_t object) { phases_.erase(object); }
  void arrive(uintptr_t object, int thread) { clocks_.release(thread, phases_[object].arriving); }
  void arrive_copies(uintptr_t object, int thread, Clock copied) {
    clocks_.release_copies(thread, copied, phases_[object].arriving);
  }
  void complete(uintptr_t object, bool accumulates) {
    Phase& phase = phases_[object];
    phase.complete = phase.arriving;
    if (!accumulates) phase.arriving.clear();
  }
  void leave(uintptr_t object, int thread) { clocks_.acquire(thread, phases_[object].complete); }

  uint32_t follow_copies(int thread) { return clocks_.follow_copies(thread); }
  void commit_copies(int thread) { clocks_.commit_copies(thread); }
  void wait_copies(int thread, unsigned pending) { clocks_.wait_copies(thread, pending); }

 private:
  struct Phase {
    Knowledge arriving, complete;
  };

  struct Spot {
    ArrayId array;
    long offset;
    unsigned bytes;
  };

  void next_phase() {
    ++phase_;
    readers_.clear();
  }

  // False when the access lies outside its array.
  bool check_place(const Arrays& arrays, ArrayId array, long offset, int thread, const Access& access) {
    Deed now{thread, cta_, access.site, access.kind};
    bool vector = (access.bytes & (access.bytes - 1)) == 0;
    if (vector && access.address % access.bytes != 0)
      findings_.tell(Flaw::misaligned, array, offset, access.bytes, now);
    if (offset < 0 || static_cast<size_t>(offset) + access.bytes > arrays.bytes(array)) {
      findings_.tell(Flaw::out_of_bounds, array, offset, access.bytes, now);
      return false;
    }
    if (array.space == Space::global && in_padding(arrays.request().globals[static_cast<size_t>(array.number)].matrix,
                                                   static_cast<size_t>(offset), access.bytes))
      findings_.tell(Flaw::padding, array, offset, access.bytes, now);
    return true;
  }

  static bool in_padding(const MatrixShape& matrix, size_t offset, unsigned bytes) {
    if (matrix.rows == 0) return false;
    if (matrix.batch_stride != 0) offset %= matrix.batch_stride;
    return offset / matrix.row_stride >= matrix.rows || offset % matrix.row_stride + bytes > matrix.row_bytes;
  }

  Shadow* shadow_of(const Arrays& arrays, ArrayId array) {
    if (array.space == Space::shared_static) return &static_;
    if (array.space == Space::shared_dynamic) return &dynamic_;
    const GlobalArray& global = arrays.request().globals[static_cast<size_t>(array.number)];
    if (!global.writable) return nullptr;
    Shadow& shadow = globals_[static_cast<size_t>(array.number)];
    if (shadow.empty()) shadow.reset(global.bytes);
    return &shadow;
  }

  void visit(Cell& cell, const Moment& now, int thread, const Spot& spot) {
    if (cell.cta != cta_ + 1) take_over(cell, now, thread, spot);
    const Moment& write = cell.write;
    if (write.clock != 0) {
      check_order(write, now, thread, spot);
    } else if (spot.array.space != Space::global && !writes(now.kind)) {
      findings_.tell(Flaw::uninitialised, spot.array, spot.offset, spot.bytes, {thread, cta_, now.site, now.kind});
    }
    if (cell.phase != phase_) {
      cell.phase = phase_;
      cell.readers = 0;
    }
    if (!writes(now.kind)) {
      readers_.add(cell.readers, now);
      return;
    }
    readers_.each(cell.readers, [&](const Moment& reader) { check_order(reader, now, thread, spot); });
    cell.readers = 0;
    cell.write = now;
  }

  void check_order(const Moment& before, const Moment& now, int thread, const Spot& spot) {
    if (clocks_.knows(thread, before.actor, before.clock)) return;
    if (is_atomic(before.kind) && is_atomic(now.kind)) return;
    Deed first{clocks_.thread_of(before.actor), cta_, before.site, before.kind};
    bool waited = !clocks_.is_copy(before.actor) || clocks_.waited(before.actor, before.clock);
    findings_.tell_race(spot.array, spot.offset, spot.bytes, first, {thread, cta_, now.site, now.kind}, waited);
  }

  // Memory that another CTA touched last: no two CTAs are ordered, unless this one has acquired something
  // in global memory.
  void take_over(Cell& cell, const Moment& now, int thread, const Spot& spot) {
    const Moment& before = cell.write;
    bool both_atomic = is_atomic(before.kind) && is_atomic(now.kind);
    if (cell.cta != 0 && before.clock != 0 && !both_atomic && !synchronised_) {
      Deed first{clocks_.thread_of(before.actor), cell.cta - 1, before.site, before.kind};
      findings_.tell_race(spot.array, spot.offset, spot.bytes, first, {thread, cta_, now.site, now.kind}, true);
    }
    cell = Cell{};
    cell.cta = cta_ + 1;
  }

  Findings findings_;
  Clocks clocks_;
  Readers readers_;
  Shadow static_, dynamic_;
  std::vector<Shadow> globals_;  // by slot
  std::unordered_map<uintptr_t, Knowledge> released_;
  std::unordered_map<uintptr_t, Phase> phases_;  // by number of a named barrier or address of an mbarrier
  uint32_t cta_ = 0, phase_ = 0;
  bool synchronised_ = false;
};
