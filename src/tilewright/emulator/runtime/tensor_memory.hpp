// TMA: boxes on their way between global and shared memory. Owns when each is copied and what must be waited for; which
// bytes it moves is tensor_map.hpp's, and what it must keep to box_rules.hpp's.
//
// A load lands when it is issued, or when no thread can run, as the schedule says. A store reads shared memory and
// writes the matrix when it is issued, or each no sooner than a wait or the thread's end makes it.
#pragma once

#include <vector>

#include "box_rules.hpp"
#include "mbarriers.hpp"
#include "observer.hpp"
#include "shared_memory.hpp"

class TensorMemory {
 public:
  struct Operands {
    BoxOperands box;
    Site site;
    uint32_t code_site;
  };

  TensorMemory(Threads& threads, const SharedMemory& smem, Mbarriers& mbarriers, Observer& observer, Random& random,
               Completion completion)
      : threads_(threads),
        smem_(smem),
        mbarriers_(mbarriers),
        observer_(observer),
        random_(random),
        completion_(completion) {}

  // Before each CTA: nothing under way.
  void reset() {
    loads_.clear();
    stores_.assign(static_cast<size_t>(threads_.count()), {});
  }

  void load(const Operands& operands, void* mbarrier) {
    Load load{checked_box(threads_, smem_, operands.box, false, operands.site), mbarrier, operands.site,
              threads_.current(), 0};
    mbarriers_.require(threads_, mbarrier, "a TMA load", operands.site);
    auto object = reinterpret_cast<uintptr_t>(mbarrier);
    observer_.bulk_load(load.thread, object, load.box.smem, load.box.map.box_bytes(), operands.code_site);
    for (unsigned i = 0; i < load.box.rows(); ++i)
      if (Box::Inside part = load.box.inside(i); part.bytes != 0)
        observer_.bulk_load_row(load.thread, object, reinterpret_cast<uintptr_t>(part.gmem), part.bytes,
                                operands.code_site);
    load.moment = observer_.bulk_mark(object);
    touch(load.box, load.site);
    if (at_once())
      land(load);
    else
      loads_.push_back(load);
  }

  // Completes one load that is under way, the oldest or any one, as the schedule says. Returns whether there was one.
  bool land_one() {
    if (loads_.empty()) return false;
    size_t chosen = completion_ == Completion::random ? random_.below(loads_.size()) : 0;
    Load load = loads_[chosen];
    loads_.erase(loads_.begin() + static_cast<long>(chosen));
    land(load);
    return true;
  }

  void store(const Operands& operands) {
    Stores& mine = stores_[static_cast<size_t>(threads_.current())];
    mine.pending.push_back(
        {checked_box(threads_, smem_, operands.box, true, operands.site), mine.groups, operands.site, {}});
    Store& store = mine.pending.back();
    int thread = threads_.current();
    observer_.bulk_store(thread, store.box.smem, store.box.map.box_bytes(), operands.code_site);
    for (unsigned i = 0; i < store.box.rows(); ++i)
      if (Box::Inside part = store.box.stored(i); part.bytes != 0)
        observer_.bulk_store_row(thread, reinterpret_cast<uintptr_t>(part.gmem), part.bytes, operands.code_site);
    touch(store.box, store.site);
    if (!at_once()) return;
    store.read();
    if (at_once()) write(store);
  }

  void commit() {
    ++stores_[static_cast<size_t>(threads_.current())].groups;
    observer_.commit_bulk(threads_.current());
  }

  // All but the `pending` newest groups of the current thread have read shared memory, or are in global memory too.
  // What an earlier wait let read is written by now at the latest.
  void wait(unsigned pending, bool reads_only) {
    Stores& mine = stores_[static_cast<size_t>(threads_.current())];
    unsigned end = mine.groups > pending ? mine.groups - pending : 0;
    size_t over = 0, covered = 0;
    for (; covered < mine.pending.size() && mine.pending[covered].group < end; ++covered) {
      Store& store = mine.pending[covered];
      if (store.is_waited || !reads_only) over = covered + 1;
      store.read();
      store.is_waited = true;
    }
    finish_first(mine, over);
    observer_.wait_bulk(threads_.current(), pending, reads_only);
  }

  // The current thread ends: its stores must have read what is gone with its CTA, and are then completed.
  void leave() {
    Stores& mine = stores_[static_cast<size_t>(threads_.current())];
    for (const Store& store : mine.pending) {
      const char* lacks = store.group == mine.groups ? "tma_commit and tma_wait_read" : "tma_wait_read";
      if (!store.is_waited)
        threads_.refuse(store.site,
                        "tma_store that its thread never waits for: shared memory may be gone before it is "
                        "read; end with %s",
                        lacks);
    }
    finish_first(mine, mine.pending.size());
    mine.groups = 0;
  }

  // The CTA ends: no load may still be under way, as far as anyone has waited.
  void finish() {
    while (land_one()) continue;
    if (const Mbarriers::Landing* landing = mbarriers_.unseen()) {
      threads_.act_as(landing->thread);
      threads_.refuse(landing->site,
                      "tma_load that nobody waits for: it may still be on its way when its CTA ends; "
                      "wait for its mbarrier's phase");
    }
  }

 private:
  struct Load {
    Box box;
    void* mbarrier;
    Site site;
    int thread;
    uint32_t moment;  // of the mbarrier's loads, as the observer counts them
  };
  struct Store {
    Box box;
    unsigned group;
    Site site;
    std::vector<unsigned char> bytes;  // as read; none before
    bool is_written = false;
    bool is_waited = false;  // the thread knows that shared memory has been read

    void read() {
      if (!bytes.empty()) return;
      bytes.resize(box.map.box_bytes());
      box.read(bytes.data());
    }
  };
  struct Stores {
    std::vector<Store> pending;  // in the order of issue
    unsigned groups = 0;         // closed so far
  };

  bool at_once() {
    return completion_ == Completion::earliest || (completion_ == Completion::random && (random_.next() & 1));
  }

  void land(const Load& load) {
    int waiting = threads_.act_as(load.thread);
    threads_.act_at(load.site);
    load.box.load();
    threads_.act_at({});
    observer_.bulk_loaded(reinterpret_cast<uintptr_t>(load.mbarrier), load.moment);
    mbarriers_.land(threads_, load.mbarrier, load.box.map.box_bytes(), {load.site, load.thread});
    threads_.act_as(waiting);
  }

  void write(Store& store) {
    if (store.is_written) return;
    store.read();
    threads_.act_at(store.site);
    store.box.write(store.bytes.data());
    threads_.act_at({});
    store.is_written = true;
  }

  // The oldest `count` stores are over.
  void finish_first(Stores& stores, size_t count) {
    for (size_t i = 0; i < count; ++i) write(stores.pending[i]);
    stores.pending.erase(stores.pending.begin(), stores.pending.begin() + static_cast<long>(count));
  }

  // Reads what the box has of the matrix at its corners: a copy outside its array fails where it is issued.
  void touch(const Box& box, Site site) {
    threads_.act_at(site);
    for (unsigned i : {0u, box.rows() - 1})
      if (Box::Inside part = box.inside(i); part.bytes != 0) {
        auto* memory = static_cast<const volatile unsigned char*>(part.gmem);
        (void)memory[0];
        (void)memory[part.bytes - 1];
      }
    threads_.act_at({});
  }

  Threads& threads_;
  const SharedMemory& smem_;
  Mbarriers& mbarriers_;
  Observer& observer_;
  Random& random_;
  Completion completion_;
  std::vector<Load> loads_;
  std::vector<Stores> stores_;  // by thread
};
