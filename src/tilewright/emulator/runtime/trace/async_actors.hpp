// Those who act beside a CTA's threads through the asynchronous proxy: TMA loads, one actor for each mbarrier that
// counts their bytes; TMA stores, two for each thread that issues them, one that reads and one that writes; products of
// wgmma, one for each warpgroup. Owns which moments of theirs are over, and by which wait a thread knows it.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "clocks.hpp"

class AsyncActors {
 public:
  static constexpr int warpgroup_threads = 128;

  AsyncActors(Clocks& clocks, int threads)
      : clocks_(clocks), stores_(size(threads)), products_(size(threads)), warpgroups_(size(threads)) {}

  // Nothing has been issued.
  void start() {
    for (auto& [mbarrier, loads] : loads_) loads.on_the_way.clear();
    for (Stores& stores : stores_) stores.groups.clear();
    for (Groups& products : products_) products.clear();
  }

  // The loads that count in the mbarrier; `thread` issues the next one.
  Actor loads(uintptr_t mbarrier, int thread) {
    Loads& loads = loads_[mbarrier];
    if (loads.actor == nobody) loads.actor = clocks_.add_actor(thread);
    clocks_.set_issuer(loads.actor, thread);
    return loads.actor;
  }
  Clock issue_load(uintptr_t mbarrier) {
    Loads& loads = loads_[mbarrier];
    loads.on_the_way.push_back(clocks_.end_moment(loads.actor));
    return loads.on_the_way.back();
  }
  // A load's bytes are in place. What came out of turn is known once all before it have come.
  void complete_load(uintptr_t mbarrier, Clock moment, Knowledge& arriving) {
    Loads& loads = loads_[mbarrier];
    std::vector<Clock>& left = loads.on_the_way;
    left.erase(std::find(left.begin(), left.end(), moment));
    Clock next = left.empty() ? clocks_.now(loads.actor) : *std::min_element(left.begin(), left.end());
    raise(arriving.happened, loads.actor, next - 1);
  }
  // A thread has waited for the phase that hands on `complete`.
  void wait_loads(uintptr_t mbarrier, const Knowledge& complete) {
    auto found = loads_.find(mbarrier);
    if (found != loads_.end() && found->second.actor < complete.happened.size())
      clocks_.note_waited(found->second.actor, complete.happened[found->second.actor]);
  }

  Actor store_reads(int thread) { return stores_of(thread).reads; }
  Actor store_writes(int thread) { return stores_of(thread).writes; }
  void commit_stores(int thread) {
    Stores& stores = stores_of(thread);
    clocks_.end_moment(stores.reads);
    stores.groups.commit(clocks_.end_moment(stores.writes));
  }
  void wait_stores(int thread, unsigned pending, bool reads_only) {
    const Stores& stores = stores_[size(thread)];
    if (stores.reads == nobody) return;
    Clock over = stores.groups.over(pending);
    clocks_.learn(thread, stores.reads, over);
    if (!reads_only) clocks_.learn(thread, stores.writes, over);
  }

  // The products of the warpgroup of `thread`.
  Actor products(int thread) {
    int first = thread / warpgroup_threads * warpgroup_threads;
    Actor& actor = warpgroups_[size(first)];
    if (actor == nobody) actor = clocks_.add_actor(first);
    return actor;
  }
  void issue_product(int thread) { clocks_.end_moment(products(thread)); }
  // No product of the warpgroup is issued before all its threads have come, so the last one was this thread's too.
  void commit_products(int thread) { products_[size(thread)].commit(clocks_.now(products(thread)) - 1); }
  void wait_products(int thread, unsigned pending) {
    clocks_.learn(thread, products(thread), products_[size(thread)].over(pending));
  }

 private:
  static constexpr Actor nobody = 0;  // a thread, and so none of these

  struct Loads {
    Actor actor = nobody;
    std::vector<Clock> on_the_way;
  };
  struct Stores {
    Actor reads = nobody, writes = nobody;
    Groups groups;
  };

  static size_t size(int count) { return static_cast<size_t>(count); }

  Stores& stores_of(int thread) {
    Stores& stores = stores_[size(thread)];
    if (stores.reads == nobody) {
      stores.reads = clocks_.add_actor(thread);
      stores.writes = clocks_.add_actor(thread);
    }
    return stores;
  }

  Clocks& clocks_;
  std::unordered_map<uintptr_t, Loads> loads_;  // by mbarrier
  std::vector<Stores> stores_;                  // by thread
  std::vector<Groups> products_;                // by thread: what it has committed of its warpgroup's
  std::vector<Actor> warpgroups_;               // by first thread
};
