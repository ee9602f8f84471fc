// Judges one access by what is remembered of the bytes that it touches: whether what it reads was written, whether it
// is ordered after what others did there, and whether the asynchronous proxy sees what threads have stored. Owns these
// three rules; what order there is, is clocks.hpp's.
#pragma once

#include "clocks.hpp"
#include "places.hpp"

class Judge {
 public:
  Judge(const TraceRequest& request, const Clocks& clocks)
      : findings_(request.output_fd), places_(request, findings_), clocks_(clocks) {}

  void begin_cta(uint32_t cta, const Arrays& arrays) {
    cta_ = cta;
    synchronised_ = false;
    next_phase();
    late_readers_.clear();
    places_.begin_cta(arrays);
  }

  // All threads of the CTA have met.
  void next_phase() {
    ++phase_;
    readers_.clear();
  }

  // The CTA has acquired something in global memory, and is taken to come after those that ran before it.
  void synchronise() { synchronised_ = true; }

  // `actor` accesses the stretch in the name of `team`, whose threads must know what that comes after.
  void access(const Arrays& arrays, Team team, Actor actor, const Stretch& stretch) {
    ArrayId array = arrays.find(stretch.space, stretch.address);
    Case it{team,          {clocks_.now(actor), stretch.site, actor, stretch.kind}, array, 0,
            stretch.bytes, {team.first, cta_, stretch.site, stretch.kind},          {}};
    places_.each_cell(arrays, array, stretch, it.deed, [&](Cell& cell, long offset) {
      it.offset = offset;
      visit(cell, it);
    });
  }

  void index(const char* type, long index, int thread, uint32_t site) {
    findings_.tell_index(type, index, {thread, cta_, site, Kind::load});
  }

 private:
  struct Case {
    Team team;
    Moment now;
    ArrayId array;
    long offset;  // of the cell that is looked at
    unsigned bytes;
    Deed deed;
    Moment cleared;  // an access before it that it was found to come after
  };

  void visit(Cell& cell, Case& it) {
    if (cell.cta != cta_ + 1) take_over(cell, it);
    if (cell.write.clock != 0)
      check_order(cell.write, it);
    else if (it.array.space != Space::global && !writes(it.now.kind))
      findings_.tell(Flaw::uninitialised, it.array, it.offset, it.bytes, it.deed);
    if (it.now.kind == Kind::mbarrier_use) return;  // what orders others needs no order itself
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

  void overwrite(Cell& cell, Case& it) {
    auto check = [&](const Moment& reader) { check_order(reader, it); };
    readers_.each(cell.readers, check);
    late_readers_.each(cell.late_readers, check);
    cell.readers = 0;
    late_readers_.drop(cell.late_readers);
    cell.write = it.now;
  }

  void check_order(const Moment& before, Case& it) {
    const Moment& cleared = it.cleared;
    if (before.actor == cleared.actor && before.clock == cleared.clock && before.kind == cleared.kind) return;
    Flaw flaw = Flaw::race;
    if (clocks_.all_know(it.team, before.actor, before.clock)) {
      if (is_visible(before, it)) {
        it.cleared = before;
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

  // Whether what was stored before is seen where it is touched now. The fence that there is covers shared memory alone.
  bool is_visible(const Moment& before, const Case& it) const {
    if (!by_async_proxy(it.now.kind) || by_async_proxy(before.kind) || !writes(before.kind)) return true;
    return it.array.space != Space::global && clocks_.all_show(it.team, before.actor, before.clock);
  }

  // Memory that another CTA touched last: no two CTAs are ordered, unless this one has acquired something
  // in global memory.
  void take_over(Cell& cell, const Case& it) {
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
  const Clocks& clocks_;
  Readers readers_, late_readers_;
  uint32_t cta_ = 0, phase_ = 0;
  bool synchronised_ = false;
};
