// What each instruction asks of memory, summed by site: requests, wavefronts, sectors. One counter for each OS
// thread, which runs CTAs one at a time; totals are merged at the end.
#pragma once

#include <pthread.h>

#include "arrays.hpp"
#include "lockstep.hpp"
#include "output.hpp"
#include "sectors.hpp"

// One kind of access at one site to one array. Shared and global accesses use the fields of their own.
struct SiteCounts {
  uint32_t site;
  Kind kind;
  ArrayId array;
  unsigned bytes;
  unsigned long instructions = 0, lanes = 0;
  unsigned long wavefronts = 0, phases = 0;
  unsigned long sectors = 0, fewest_sectors = 0, wanted_bytes = 0;
  int ways = 0, banks = 0;

  bool same_as(const SiteCounts& other) const {
    return site == other.site && kind == other.kind && array == other.array && bytes == other.bytes;
  }

  void add(const SiteCounts& other) {
    instructions += other.instructions, lanes += other.lanes;
    wavefronts += other.wavefronts, phases += other.phases;
    sectors += other.sectors, fewest_sectors += other.fewest_sectors, wanted_bytes += other.wanted_bytes;
    if (other.ways > ways) ways = other.ways;
    if (other.banks > banks) banks = other.banks;
  }

  void write(int fd) const {
    write_line(fd,
               "{\"count\":{\"site\":%u,\"kind\":%d,\"space\":%d,\"array\":%d,\"bytes\":%u,\"instructions\":%lu,"
               "\"lanes\":%lu,\"wavefronts\":%lu,\"phases\":%lu,\"sectors\":%lu,\"fewest_sectors\":%lu,"
               "\"wanted_bytes\":%lu,\"ways\":%d,\"banks\":%d}}\n",
               site, static_cast<int>(kind), static_cast<int>(array.space), array.number, bytes, instructions, lanes,
               wavefronts, phases, sectors, fewest_sectors, wanted_bytes, ways, banks);
  }
};

// A raw access as the parent reads it (emulator/events.py).
struct Event {
  uint64_t address;
  uint64_t instruction;  // accesses of one warp instruction share it
  uint32_t site, cta;
  uint16_t thread, bytes;
  uint8_t kind, space;
  int16_t array;
};
static_assert(sizeof(Event) == 32);

class SiteTable {
 public:
  // The counts of `wanted`'s site, kind and array, made if need be.
  SiteCounts& find(const SiteCounts& wanted) {
    size_t slot = wanted.site;
    if (first_.size() <= slot) first_.resize(slot + 1024, none);
    for (int i = first_[slot]; i != none; i = next_[static_cast<size_t>(i)])
      if (counts_[static_cast<size_t>(i)].same_as(wanted)) return counts_[static_cast<size_t>(i)];
    next_.push_back(first_[slot]);
    first_[slot] = static_cast<int>(counts_.size());
    counts_.push_back(wanted);
    return counts_.back();
  }

  void add(const SiteTable& other) {
    for (const SiteCounts& counts : other.counts_) {
      SiteCounts empty{counts.site, counts.kind, counts.array, counts.bytes};
      find(empty).add(counts);
    }
  }

  void write(int fd) const {
    for (const SiteCounts& counts : counts_) counts.write(fd);
  }

 private:
  static constexpr int none = -1;
  std::vector<int> first_, next_;  // by site, then by place in counts_
  std::vector<SiteCounts> counts_;
};

class Counter {
 public:
  Counter(const TraceRequest& request, int threads)
      : request_(request),
        threads_(threads),
        logs_(size(threads)),
        warps_(size(threads + warp_lanes - 1) / warp_lanes) {}

  void begin_cta(uint32_t cta) {
    cta_ = cta;
    for (size_t warp = 0; warp < warps_.size(); ++warp) warps_[warp] = {lanes_of(warp), 0};
  }

  // Built where it is kept: a copy would wait for the stores that make it.
  template <typename... Fields>
  void log(int thread, Fields... fields) {
    Log& log = logs_[size(thread)];
    if (log.size() == log.capacity()) reserve_more(log);
    log.emplace_back(fields...);
  }

  // All lanes of the warp that starts with thread `first` are at one place.
  void meet(const Arrays& arrays, int first) {
    bool any = false;
    for (int lane = 0; lane < lanes_of(size(first) / warp_lanes); ++lane) any |= !logs_[size(first + lane)].empty();
    if (any) walk(arrays, first);
  }

  // The thread waits for its CTA, or has exited. Once all lanes of its warp do, their logs become instructions.
  void stop(const Arrays& arrays, int thread, bool exits) {
    Warp& warp = warps_[size(thread) / warp_lanes];
    exits ? --warp.alive : ++warp.stopped;
    if (warp.stopped < warp.alive) return;
    warp.stopped = 0;
    walk(arrays, thread / warp_lanes * warp_lanes);
  }

  // A row of a box that TMA moves: no warp asks for it.
  void count_row(const Arrays& arrays, uintptr_t address, unsigned bytes, Kind kind, uint32_t site) {
    SiteCounts& counts = sites_.find({site, kind, arrays.find(Space::global, address), bytes});
    uintptr_t first = address / sector_bytes, last = (address + bytes - 1) / sector_bytes;
    counts.instructions += 1;
    counts.lanes += 1;
    count_sectors(counts, {static_cast<unsigned>(last - first + 1), bytes});
  }

  // Adds to the launch's totals. `write_totals` tells them when every OS thread has.
  void merge() {
    pthread_mutex_lock(&totals_lock());
    totals().add(sites_);
    pthread_mutex_unlock(&totals_lock());
  }
  static void write_totals(int fd) { totals().write(fd); }

 private:
  static constexpr size_t most_logged = size_t{1} << 26;  // accesses, a gibibyte of them
  static constexpr size_t first_logged = 68;  // no power of two: logs must not fall into the same cache sets

  struct Warp {
    int alive, stopped;
  };

  static size_t size(int count) { return static_cast<size_t>(count); }
  int lanes_of(size_t warp) const {
    int rest = threads_ - static_cast<int>(warp) * warp_lanes;
    return rest < warp_lanes ? rest : warp_lanes;
  }

  static SiteTable& totals() {
    static SiteTable table;
    return table;
  }
  static pthread_mutex_t& totals_lock() {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    return lock;
  }

  void walk(const Arrays& arrays, int first) {
    int lanes = lanes_of(size(first) / warp_lanes);
    walk_warp(&logs_[size(first)], lanes, [&](const Access* const* by_lane, uint32_t active, const Access& any) {
      count(arrays, by_lane, active, any);
      if (request_.events_fd >= 0) keep_events(arrays, by_lane, active, first);
    });
    for (int lane = 0; lane < lanes; ++lane) {
      logs_[size(first + lane)].clear();
      spare_.push_back(std::move(logs_[size(first + lane)]));
    }
    flush_events();
  }

  // Memory that the last warp used is still in the cache.
  __attribute__((noinline)) void reserve_more(Log& log) {
    if (log.capacity() == 0 && !spare_.empty()) {
      log = std::move(spare_.back());
      spare_.pop_back();
      return;
    }
    size_t more = log.capacity() == 0 ? first_logged : log.capacity();
    reserved_ += more;
    if (reserved_ > most_logged)
      fail_setup("too many accesses between two barriers to keep", "trace a smaller problem");
    log.reserve(log.capacity() + more);
  }

  void count(const Arrays& arrays, const Access* const* by_lane, uint32_t active, const Access& any) {
    WarpAddresses warp;
    warp.active = active;
    ArrayId array = arrays.find(any.space, any.address);
    uintptr_t start = any.space == Space::global ? 0 : arrays.start(array);
    for (int lane = 0; lane < warp_lanes; ++lane)
      if (warp.has(lane)) warp.address[lane] = by_lane[lane]->address - start;
    SiteCounts& counts = sites_.find({any.site, any.kind, array, any.bytes});
    counts.instructions += 1;
    counts.lanes += static_cast<unsigned>(__builtin_popcount(active));
    if (any.space == Space::global)
      count_sectors(counts, sector_use(warp, any.bytes));
    else
      count_wavefronts(counts, bank_use(warp, any.bytes, any.kind == Kind::load));
  }

  static void count_sectors(SiteCounts& counts, const SectorUse& use) {
    counts.sectors += use.sectors;
    counts.wanted_bytes += use.wanted_bytes;
    counts.fewest_sectors += (use.wanted_bytes + sector_bytes - 1) / sector_bytes;
  }

  static void count_wavefronts(SiteCounts& counts, const BankUse& use) {
    int banks = __builtin_popcount(use.banks);
    counts.wavefronts += static_cast<unsigned>(use.wavefronts);
    counts.phases += static_cast<unsigned>(use.phases);
    if (use.ways > counts.ways) counts.ways = use.ways;
    if (banks > counts.banks) counts.banks = banks;
  }

  void keep_events(const Arrays& arrays, const Access* const* by_lane, uint32_t active, int first) {
    for (int lane = 0; lane < warp_lanes; ++lane) {
      if (!(active >> lane & 1)) continue;
      const Access& access = *by_lane[lane];
      ArrayId array = arrays.find(access.space, access.address);
      events_.push_back({access.address - arrays.start(array), instruction_, access.site, cta_,
                         static_cast<uint16_t>(first + lane), access.bytes, static_cast<uint8_t>(access.kind),
                         static_cast<uint8_t>(access.space), static_cast<int16_t>(array.number)});
    }
    ++instruction_;
  }

  void flush_events() {
    if (!events_.empty()) write_all(request_.events_fd, events_.data(), events_.size() * sizeof(Event));
    events_.clear();
  }

  const TraceRequest& request_;
  int threads_;
  std::vector<Log> logs_;  // by thread
  std::vector<Warp> warps_;
  std::vector<Log> spare_;
  size_t reserved_ = 0;
  uint32_t cta_ = 0;
  SiteTable sites_;
  std::vector<Event> events_;
  uint64_t instruction_ = 0;
};
