// Watches the memory of the CTAs that one OS thread runs. Owns what an access passes through: is it memory that
// counts, log it for the counter, hand it to the checker.
#pragma once

#include "../launch.hpp"
#include "checker.hpp"
#include "counter.hpp"

class Observer {
 public:
  Observer(const Launch& launch, int threads)
      : request_(launch.trace), arrays_(request_), counter_(request_, threads), checker_(request_, threads) {}

  // Every OS thread has finished.
  static void write_totals(const Launch& launch) {
    if (launch.trace.counts) Counter::write_totals(launch.trace.output_fd);
  }

  void begin_cta(uint64_t linear, Extent static_smem, Extent dynamic_smem) {
    auto cta = static_cast<uint32_t>(linear);
    arrays_.place(static_smem, dynamic_smem);
    if (request_.counts) counter_.begin_cta(cta);
    if (request_.checks) checker_.begin_cta(cta, arrays_);
  }

  // The thread arrives at a barrier for its whole CTA, or exits.
  void stop(int thread, bool exits) {
    if (request_.counts) counter_.stop(arrays_, thread, exits);
  }

  // Every thread of the CTA has arrived.
  void barrier() {
    if (request_.checks) checker_.barrier();
  }

  // The OS thread has no more CTAs.
  void finish() {
    if (request_.counts) counter_.merge();
  }

  void access(int thread, uintptr_t address, unsigned bytes, Kind kind, uint32_t site) {
    Space space;
    if (!arrays_.classify(address, space)) return;
    if (request_.counts) counter_.log(thread, address, site, bytes, kind, space);
    if (request_.checks) checker_.access(arrays_, thread, Access(address, site, bytes, kind, space));
  }

  // An index beyond its dimension, before the access that it leads to.
  void index(int thread, const char* type, long index, uint32_t site) {
    if (request_.checks) checker_.index(type, index, thread, site);
  }

  void load(int thread, uintptr_t address, unsigned bytes, uint32_t site) {
    access(thread, address, bytes, Kind::matrix_load, site);
  }

  // The thread has seen in a flag what it waited for.
  void see_flag(int thread, uintptr_t address, uint32_t site) {
    access(thread, address, sizeof(unsigned), Kind::atomic_load, site);
    synchronise(thread, address, true, false);
  }

  // Lanes of the warp that starts with thread `first` meet, and what they did before becomes their instructions.
  void meet(int first, uint32_t lanes, bool is_all, bool orders_memory) {
    if (request_.counts && is_all) counter_.meet(arrays_, first);
    if (request_.checks && orders_memory) checker_.meet(first, lanes);
  }

  // An object with phases: threads arrive, a phase is complete, and who has waited for it leaves.
  void init_mbarrier(uintptr_t object, int, uint32_t) {
    if (request_.checks) checker_.forget(object);
  }
  void arrive(uintptr_t object, int thread) {
    if (request_.checks) checker_.arrive(object, thread);
  }
  void arrive_copies(uintptr_t object, int thread, uint32_t copied) {
    if (request_.checks) checker_.arrive_copies(object, thread, copied);
  }
  // `accumulates`: the next phase hands on besides what this one did.
  void complete(uintptr_t object, bool accumulates) {
    if (request_.checks) checker_.complete(object, accumulates);
  }
  void leave(uintptr_t object, int thread) {
    if (request_.checks) checker_.leave(object, thread);
  }

  void synchronise(int thread, uintptr_t address, bool acquires, bool releases) {
    if (request_.checks) checker_.synchronise(arrays_, thread, address, acquires, releases);
  }

  void copy(int thread, const void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, uint32_t site) {
    if (source_bytes != 0) access(thread, reinterpret_cast<uintptr_t>(gmem), source_bytes, Kind::copy_load, site);
    access(thread, reinterpret_cast<uintptr_t>(smem), bytes, Kind::copy_store, site);
  }
  void commit_copies(int thread) {
    if (request_.checks) checker_.commit_copies(thread);
  }
  void wait_copies(int thread, unsigned pending) {
    if (request_.checks) checker_.wait_copies(thread, pending);
  }
  // A mark behind the copies that the thread has issued so far, for `arrive_copies`.
  uint32_t follow_copies(int thread) { return request_.checks ? checker_.follow_copies(thread) : 0; }

  void writes(int, uintptr_t, unsigned, uint32_t) {}
  void proxy_fence(int) {}
  void bulk_load(int, uintptr_t, uintptr_t, unsigned, uint32_t) {}
  void bulk_load_row(int, uintptr_t, uintptr_t, unsigned, uint32_t) {}
  uint32_t bulk_mark(uintptr_t) { return 0; }
  void bulk_loaded(uintptr_t, uint32_t) {}
  void bulk_store(int, uintptr_t, unsigned, uint32_t) {}
  void bulk_store_row(int, uintptr_t, unsigned, uint32_t) {}
  void commit_bulk(int) {}
  void wait_bulk(int, unsigned, bool) {}
  void wgmma(int, const Range*, size_t, const Range*, size_t, uint32_t) {}
  void commit_wgmma(int) {}
  void wait_wgmma(int, unsigned) {}

 private:
  const TraceRequest& request_;
  Arrays arrays_;
  Counter counter_;
  Checker checker_;
};
