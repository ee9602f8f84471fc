// mbarrier objects in shared memory: phases that end when their arrivals and their bytes have come. Owns every
// object's counts, kept here by address; the object itself holds a mark, so that overwriting one is noticed.
#pragma once

#include <string.h>

#include <unordered_map>

#include "wait.hpp"

class Mbarriers {
 public:
  // A TMA load that has counted its bytes.
  struct Landing {
    Site site;
    int thread;
  };

  static constexpr long most_arrivals = (1 << 20) - 1, most_bytes = (1 << 20) - 1;

  void reset() { objects_.clear(); }

  void init(Threads& threads, void* object, unsigned expected, Site site) {
    auto address = reinterpret_cast<uintptr_t>(object);
    if (address % sizeof mark != 0) threads.refuse(site, "an mbarrier's address must be a multiple of 8");
    if (expected < 1 || expected > most_arrivals)
      threads.refuse(site, "mbarrier_init for %u arrivals: must be 1 to %ld", expected, most_arrivals);
    if (is_marked(object) && objects_.count(address) != 0)
      threads.refuse(site, "mbarrier_init of an mbarrier in use: invalidate it first");
    memcpy(object, &mark, sizeof mark);
    objects_[address] = {expected, expected};
  }

  void invalidate(Threads& threads, void* object, Site site) {
    find(threads, object, "mbarrier_inval", site);
    objects_.erase(reinterpret_cast<uintptr_t>(object));
    memset(object, 0xFF, sizeof mark);
  }

  // `bytes` more to come (or fewer, where negative), then `arrivals` made. The phase may end with it.
  void update(Threads& threads, void* object, unsigned arrivals, long bytes, Site site) {
    Object& it = find(threads, object, arrivals != 0 ? "an arrival" : "a byte count", site);
    if (arrivals > it.pending)
      threads.refuse(site, "more than the %u arrivals that the mbarrier expects: the phase lacks only its bytes, %ld",
                     it.expected, it.bytes);
    it.bytes += bytes;
    if (it.bytes > most_bytes || it.bytes < -most_bytes)
      threads.refuse(site, "the mbarrier's phase waits for %ld bytes: must be within %ld", it.bytes, most_bytes);
    it.pending -= arrivals;
    if (it.pending != 0 || it.bytes != 0) return;
    it.pending = it.expected;
    ++it.phase;
    auto address = reinterpret_cast<uintptr_t>(object);
    threads.wake(WaitKind::mbarrier, address, 0, threads.count());
    threads.wake(WaitKind::mbarrier_test, address, 0, threads.count());
  }

  // A TMA load is complete, and its bytes count.
  void land(Threads& threads, void* object, long bytes, const Landing& landing) {
    Object& it = find(threads, object, "a TMA load", landing.site);
    it.landing = landing;
    it.landed = it.phase + 1;
    update(threads, object, 0, -bytes, landing.site);
  }

  // A load into a phase that nobody has seen the end of, or null.
  const Landing* unseen() const {
    uintptr_t first = UINTPTR_MAX;
    for (const auto& [address, it] : objects_)
      if (it.landed > it.seen && address < first) first = address;
    return first == UINTPTR_MAX ? nullptr : &objects_.at(first).landing;
  }

  void require(Threads& threads, void* object, const char* what, Site site) { find(threads, object, what, site); }

  // One arrival more in this phase than the object was initialised for.
  void expect_one_more(Threads& threads, void* object, Site site) {
    ++find(threads, object, "an arrival", site).pending;
  }

  // Whether the phase of this parity is over: it is not the one in progress.
  bool is_over(Threads& threads, void* object, unsigned parity, Site site) {
    if (parity > 1) threads.refuse(site, "waits for parity %u: must be 0 or 1", parity);
    Object& it = find(threads, object, "a wait", site);
    bool is_over = (it.phase & 1) != parity;
    if (is_over) it.seen = it.phase;
    return is_over;
  }

  void describe(Report& report, uintptr_t address) const {
    auto found = objects_.find(address);
    if (found == objects_.end()) return;
    const Object& it = found->second;
    report.add("\"pending\":%u,\"expected\":%u,\"bytes\":%ld,", it.pending, it.expected, it.bytes);
  }

 private:
  static constexpr uint64_t mark = 0x7261696C6D62A5A5;

  struct Object {
    unsigned expected, pending;
    long bytes = 0;
    unsigned phase = 0;
    unsigned landed = 0, seen = 0;  // phases over: once its newest load has been counted; as far as anyone has seen
    Landing landing{};              // that load
  };

  static bool is_marked(const void* object) { return memcmp(object, &mark, sizeof mark) == 0; }

  Object& find(Threads& threads, void* object, const char* what, Site site) {
    auto found = objects_.find(reinterpret_cast<uintptr_t>(object));
    if (found == objects_.end())
      threads.refuse(site, "%s at an mbarrier that is not initialised (or no longer, after mbarrier_inval)", what);
    if (!is_marked(object)) threads.refuse(site, "%s at an mbarrier that a store has overwritten", what);
    return found->second;
  }

  std::unordered_map<uintptr_t, Object> objects_;
};
