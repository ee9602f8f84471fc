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
    if (request_.checks) checker_.access(arrays_, thread, {address, bytes, site, kind, space});
  }

  // An index beyond its dimension, before the access that it leads to.
  void index(int thread, const char* type, long index, uint32_t site) {
    if (request_.checks) checker_.index(type, index, thread, site);
  }

  // What ldmatrix or stmatrix moves for the thread.
  void load(int thread, uintptr_t address, unsigned bytes, uint32_t site) {
    access(thread, address, bytes, Kind::matrix_load, site);
  }
  void writes(int thread, uintptr_t address, unsigned bytes, uint32_t site) {
    access(thread, address, bytes, Kind::matrix_store, site);
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
  void init_mbarrier(uintptr_t object, int thread, uint32_t site) {
    if (request_.checks) checker_.init_mbarrier(arrays_, object, thread, site);
  }
  void use_mbarrier(uintptr_t object, int thread, uint32_t site) {
    if (request_.checks) checker_.use_mbarrier(arrays_, object, thread, site);
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

  void proxy_fence(int thread) {
    if (request_.checks) checker_.proxy_fence(thread);
  }

  // A TMA load as it is issued: its box, each row that it reads, then a mark of it for the moment at which it lands.
  void bulk_load(int thread, uintptr_t mbarrier, uintptr_t smem, unsigned bytes, uint32_t site) {
    if (request_.checks) checker_.load_box(arrays_, thread, mbarrier, {smem, bytes}, site);
  }
  void bulk_load_row(int thread, uintptr_t mbarrier, uintptr_t gmem, unsigned bytes, uint32_t site) {
    if (!count_row(gmem, bytes, Kind::tma_load, site) || !request_.checks) return;
    checker_.load_row(arrays_, thread, mbarrier, {gmem, bytes, site, Kind::tma_load, Space::global});
  }
  uint32_t bulk_mark(uintptr_t mbarrier) { return request_.checks ? checker_.issue_load(mbarrier) : 0; }
  void bulk_loaded(uintptr_t mbarrier, uint32_t moment) {
    if (request_.checks) checker_.complete_load(mbarrier, moment);
  }

  // A TMA store as it is issued: its box, then each row that it writes.
  void bulk_store(int thread, uintptr_t smem, unsigned bytes, uint32_t site) {
    if (request_.checks) checker_.store_box(arrays_, thread, {smem, bytes}, site);
  }
  void bulk_store_row(int thread, uintptr_t gmem, unsigned bytes, uint32_t site) {
    if (!count_row(gmem, bytes, Kind::tma_store, site) || !request_.checks) return;
    checker_.store_row(arrays_, thread, {gmem, bytes, site, Kind::tma_store, Space::global});
  }
  void commit_bulk(int thread) {
    if (request_.checks) checker_.commit_stores(thread);
  }
  void wait_bulk(int thread, unsigned pending, bool reads_only) {
    if (request_.checks) checker_.wait_stores(thread, pending, reads_only);
  }

  // A product, once all threads of the warpgroup that starts with `first` have come, and what it reads of A and B.
  void wgmma(int first, const Range* a, size_t a_count, const Range* b, size_t b_count, uint32_t site) {
    if (!request_.checks) return;
    checker_.multiply(arrays_, first, a, a_count, site);
    checker_.multiply(arrays_, first, b, b_count, site);
    checker_.issue_product(first);
  }
  void commit_wgmma(int thread) {
    if (request_.checks) checker_.commit_products(thread);
  }
  void wait_wgmma(int thread, unsigned pending) {
    if (request_.checks) checker_.wait_products(thread, pending);
  }

 private:
  // False where the row lies in no array.
  bool count_row(uintptr_t gmem, unsigned bytes, Kind kind, uint32_t site) {
    Space space;
    if (!arrays_.classify(gmem, space) || space != Space::global) return false;
    if (request_.counts) counter_.count_row(arrays_, gmem, bytes, kind, site);
    return true;
  }

  const TraceRequest& request_;
  Arrays arrays_;
  Counter counter_;
  Checker checker_;
};
