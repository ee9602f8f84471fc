// One CTA: its threads as fibers of the calling OS thread, who runs next, what each waits for.
// A wait is a record of kind, object and source line, so that a deadlock can be told in the kernel's own words.
#pragma once

#include <vector>

#include "async_copy.hpp"
#include "context.hpp"
#include "kernel.hpp"
#include "launch.hpp"
#include "mbarriers.hpp"
#include "named_barriers.hpp"
#include "observer.hpp"
#include "ready_queue.hpp"
#include "register_pool.hpp"
#include "shared_memory.hpp"
#include "stacks.hpp"
#include "tensor_memory.hpp"
#include "turns.hpp"
#include "warpgroups.hpp"
#include "warps.hpp"

struct Thread {
  Context context;
  tilewright_index index;
  Wait wait;  // the last one: that of a thread that cannot run
  bool exited;
  AsyncCopies copies;
};

class Cta final : public Threads, public Resident {
 public:
  // `turns` is null where CTAs never wait for each other; else this one runs in `place` when it is its turn.
  Cta(const Launch& launch, const Kernel& kernel, Turns* turns, int place)
      : launch_(launch),
        kernel_(kernel),
        turns_(turns),
        place_(place),
        threads_(launch.threads()),
        smem_(kernel, launch.dynamic_smem_bytes),
        ready_(launch.threads(), launch.order),
        observer_(launch, launch.threads()),
        tensor_memory_(*this, smem_, mbarriers_, observer_, random_, launch.completion),
        warpgroups_(*this, smem_, observer_, random_, launch.completion) {
    if (!stacks_.allocate(launch.threads())) fail_setup("no memory for the threads' stacks", "mmap failed");
    fill_order(everyone_, launch.threads(), launch.order, random_);
    for (int i = 0; i < launch.threads(); ++i) {
      unsigned linear = static_cast<unsigned>(i), row = linear / launch.block.x;
      threads_[i].index = {linear % launch.block.x, row % launch.block.y, row / launch.block.y};
    }
  }
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  // Runs CTA number `linear` of the grid to its end on the calling OS thread.
  void run(uint64_t linear) {
    index_ = launch_.cta_index(linear);
    random_ = Random(launch_.seed, linear);
    smem_.poison();
    observer_.begin_cta(linear, smem_.static_extent(), smem_.dynamic_extent());
    warps_.reset(launch_.threads());
    named_barriers_.reset();
    mbarriers_.reset();
    tensor_memory_.reset();
    warpgroups_.reset();
    registers_.reset(launch_.threads());
    exited_ = arrived_ = fruitless_ = 0;
    diverged_ = false;
    for (int i = 0; i < launch_.threads(); ++i) {
      threads_[i].exited = false;
      threads_[i].wait = {};
      prepare_context(threads_[i].context, stacks_.top(i), stacks_.usable_bytes(), thread_main);
    }
    if (turns_ != nullptr) turns_->occupy(place_, this);
    ready_.clear();
    ready_.push_all(everyone_);
    current_ = ready_.pop(random_);
    switch_context(outside_, threads_[current_].context);
    current_ = none;
    if (turns_ != nullptr) turns_->occupy(place_, nullptr);
  }

  void syncthreads(Site site) {
    threads_[current_].wait = {WaitKind::syncthreads, 0, 0, site};
    observer_.stop(current_, false);
    if (arrived_++ == 0) arriving_line_ = site.line;
    diverged_ |= site.line != arriving_line_;
    if (arrived_ == launch_.threads()) release_syncthreads();
    run_next();
  }

  void meet(const WarpCall& call, void* mine) { warps_.meet(*this, call, mine); }
  void arrive_at_barrier(int id, int expected, bool waits, Site site) {
    observer_.arrive(static_cast<uintptr_t>(id), current_);
    named_barriers_.arrive(*this, id, expected, waits, site);
    if (waits) observer_.leave(static_cast<uintptr_t>(id), current_);
  }

  void init_mbarrier(void* object, unsigned expected, Site site, const void* caller) {
    if (smem_.place(object).space == nullptr) refuse(site, "mbarrier_init of an object that is not in shared memory");
    mbarriers_.init(*this, object, expected, site);
    observer_.init_mbarrier(reinterpret_cast<uintptr_t>(object), current_, code_site(caller));
  }
  // The call that the current thread makes needs an mbarrier that it knows to be initialised.
  void use_mbarrier(const void* object, const void* caller) {
    observer_.use_mbarrier(reinterpret_cast<uintptr_t>(object), current_, code_site(caller));
  }
  void invalidate_mbarrier(void* object, Site site) { mbarriers_.invalidate(*this, object, site); }
  void update_mbarrier(void* object, unsigned arrivals, long bytes, Site site) {
    fruitless_ = 0;
    if (arrivals != 0) observer_.arrive(reinterpret_cast<uintptr_t>(object), current_);
    mbarriers_.update(*this, object, arrivals, bytes, site);
  }
  void wait_mbarrier(void* object, unsigned parity, Site site) {
    while (!mbarriers_.is_over(*this, object, parity, site))
      block({WaitKind::mbarrier, parity, reinterpret_cast<uintptr_t>(object), site});
    observer_.leave(reinterpret_cast<uintptr_t>(object), current_);
  }
  // Others run before the answer is no, so that asking again and again is no endless loop.
  bool test_mbarrier(void* object, unsigned parity, Site site) {
    bool is_over = mbarriers_.is_over(*this, object, parity, site);
    if (!is_over) {
      block({WaitKind::mbarrier_test, parity, reinterpret_cast<uintptr_t>(object), site});
      is_over = mbarriers_.is_over(*this, object, parity, site);
    }
    if (is_over) observer_.leave(reinterpret_cast<uintptr_t>(object), current_);
    return is_over;
  }

  auto arrive_for_copies() {
    return [this](const Arrival& arrival) {
      fruitless_ = 0;
      observer_.arrive_copies(reinterpret_cast<uintptr_t>(arrival.mbarrier), arrival.thread, arrival.copied);
      mbarriers_.update(*this, arrival.mbarrier, 1, 0, arrival.site);
    };
  }
  void issue_copy(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, Site site, const void* caller) {
    check_copy(smem, gmem, bytes, source_bytes, site);
    observer_.copy(current_, smem, gmem, bytes, source_bytes, code_site(caller));
    act_at(site);
    touch(smem, bytes);
    if (source_bytes != 0) touch(gmem, source_bytes);
    threads_[current_].copies.issue({smem, gmem, bytes, source_bytes}, launch_.completion, random_);
    act_at({});
  }
  void commit_copies() {
    threads_[current_].copies.commit();
    observer_.commit_copies(current_);
  }
  void wait_copies(unsigned pending_groups) {
    threads_[current_].copies.wait(pending_groups, arrive_for_copies());
    observer_.wait_copies(current_, pending_groups);
  }
  void follow_copies(void* mbarrier, bool is_expected, Site site) {
    if (!is_expected) mbarriers_.expect_one_more(*this, mbarrier, site);
    Arrival arrival{mbarrier, site, current_, observer_.follow_copies(current_)};
    if (threads_[current_].copies.follow(arrival, launch_.completion, random_)) arrive_for_copies()(arrival);
  }

  void wait_flag(const unsigned* flag, unsigned value, Site site, const void* caller) {
    Wait wait{WaitKind::flag, value, reinterpret_cast<uintptr_t>(flag), site};
    act_at(site);
    bool there = is_set(wait);
    act_at({});
    for (; !there; there = is_set(wait)) block(wait);
    observer_.see_flag(current_, wait.object, code_site(caller));
  }
  void publish() {
    if (turns_ != nullptr) turns_->publish(place_);
  }
  // The call that the current thread makes reads or writes this memory, whichever thread does it in its place.
  void read(const void* start, unsigned bytes, const void* caller) {
    observer_.load(current_, reinterpret_cast<uintptr_t>(start), bytes, code_site(caller));
  }
  void write(void* start, unsigned bytes, const void* caller) {
    observer_.writes(current_, reinterpret_cast<uintptr_t>(start), bytes, code_site(caller));
  }

  // All lanes of the warp come to the instruction `name`, which is each one's own.
  void meet_warp(const char* name, Site site) {
    constexpr unsigned all_lanes = ~0u;
    int lanes_there = 0;
    auto count = [](void* const* lanes) {
      int there = 0;
      for (int i = 0; i < Warps::lanes; ++i) there += lanes[i] != nullptr;
      for (int i = 0; i < Warps::lanes; ++i)
        if (lanes[i] != nullptr) *static_cast<int*>(lanes[i]) = there;
    };
    warps_.meet(*this, {count, name, all_lanes, site}, &lanes_there);
    if (lanes_there != Warps::lanes)
      refuse(site, "%s: %d lanes of the warp have ended; all 32 must come", name, Warps::lanes - lanes_there);
  }
  void set_registers(int count, bool acquires, Site site) {
    meet_warp(acquires ? "acquire_registers" : "release_registers", site);
    registers_.set(*this, count, acquires, site);
  }
  TensorMemory& tensor_memory() { return tensor_memory_; }
  Warpgroups& warpgroups() { return warpgroups_; }
  unsigned smem_address(const void* address, const void* caller) const;

  int count() const override { return launch_.threads(); }
  int current() const override { return current_; }
  void block(const Wait& wait) override {
    threads_[current_].wait = wait;
    run_next();
  }
  void wake(WaitKind kind, uintptr_t object, int first, int last) override {
    if (kind == WaitKind::named_barrier || kind == WaitKind::mbarrier)
      observer_.complete(object, kind == WaitKind::mbarrier);
    wake_where(first, last, [=](const Wait& wait) { return wait.kind == kind && wait.object == object; });
  }
  void met(int first, uint32_t lanes, bool is_all, bool orders_memory) override {
    observer_.meet(first, lanes, is_all, orders_memory);
  }
  void act_at(Site site) override { call_site_ = site; }
  int act_as(int thread) override {
    int previous = current_;
    current_ = thread;
    return previous;
  }
  [[noreturn]] void refuse(Site site, const char* format, ...) override __attribute__((format(printf, 3, 4))) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    Report report;
    report.add("\"failure\":\"rule\",\"text\":").add_string(text).add(",").add_site("site", site);
    describe(report);
    report.send(false);
  }

  bool can_go_on() const override {
    if (!is_stuck_) return true;
    for (const Thread& thread : threads_)
      if (thread.wait.kind == WaitKind::flag && is_set(thread.wait)) return true;
    return false;
  }
  void describe_waits(Report& report) const override;

  bool running() const { return current_ != none; }
  const Launch& launch() const { return launch_; }
  const Kernel& kernel() const { return kernel_; }
  Observer& observer() { return observer_; }
  // Whether the runner acts for a thread: what the kernel's code then touches is not that thread's doing.
  bool acts() const { return call_site_.file != nullptr; }
  // The instruction before `caller`, a return address in the kernel, as an offset in its shared object.
  uint32_t code_site(const void* caller) const { return kernel_.site(reinterpret_cast<uintptr_t>(caller) - 1); }
  tilewright_index index() const { return index_; }
  tilewright_index thread_index() const { return threads_[current_].index; }
  unsigned char* dynamic_smem() const { return smem_.dynamic(); }
  Site call_site() const { return call_site_; }
  Site last_wait_site() const { return threads_[current_].wait.site; }
  bool in_stack_guard(const void* address) const { return stacks_.in_guard(current_, address); }
  bool past_dynamic_smem(const void* address) const { return smem_.is_past_end(address); }

  // The part of a report that says which thread of which CTA.
  void describe(Report& report) const {
    report.add_index("cta", index_).add_index("block", launch_.block);
    if (running()) report.add_index("thread", thread_index());
  }

 private:
  static constexpr int none = -1;
  static constexpr int most_fruitless_tests = 1000;

  static void thread_main();
  void end_thread();

  void run_next() {
    while (ready_.empty() && exited_ < launch_.threads()) let_time_pass();
    if (ready_.empty()) {
      switch_context(threads_[current_].context, outside_);
      return;
    }
    int previous = current_;
    current_ = ready_.pop(random_);
    constexpr size_t ahead = 2;
    if (int soon = ready_.peek(ahead); soon != none) prefetch_context(threads_[soon].context);
    if (current_ != previous) switch_context(threads_[previous].context, threads_[current_].context);
  }

  // No thread can run: what needs none happens now, as late as it may.
  void let_time_pass() {
    if (complete_arrivals() || land_load() || wake_flagged()) return;
    if (turns_ != nullptr && waits_for_flag()) {
      is_stuck_ = true;
      turns_->wait(place_);
      is_stuck_ = false;
    } else if (++fruitless_ > most_fruitless_tests || !wake_tests()) {
      report_deadlock();
    }
  }

  // Of the arrivals that pending copies hold back, as few as let a thread go on. Returns whether there was one.
  bool complete_arrivals() {
    bool any = false;
    size_t count = everyone_.size(), start = launch_.order == Order::random ? random_.below(count) : 0;
    for (size_t i = 0; i < count && ready_.empty(); ++i) {
      AsyncCopies& copies = threads_[everyone_[(start + i) % count]].copies;
      if (!copies.has_arrival()) continue;
      copies.reach_arrival(arrive_for_copies());
      any = true;
    }
    return any;
  }

  bool land_load() {
    if (!tensor_memory_.land_one()) return false;
    fruitless_ = 0;
    return true;
  }

  bool wake_flagged() {
    return wake_where(0, count(), [](const Wait& wait) { return wait.kind == WaitKind::flag && is_set(wait); });
  }
  bool wake_tests() {
    return wake_where(0, count(), [](const Wait& wait) { return wait.kind == WaitKind::mbarrier_test; });
  }
  bool waits_for_flag() const {
    for (const Thread& thread : threads_)
      if (thread.wait.kind == WaitKind::flag) return true;
    return false;
  }
  static bool is_set(const Wait& wait) {
    return __atomic_load_n(reinterpret_cast<const unsigned*>(wait.object), __ATOMIC_ACQUIRE) == wait.value;
  }

  template <typename Predicate>
  bool wake_where(int first, int last, Predicate goes_on) {
    bool any = false;
    for (int thread = first; thread < last; ++thread) {
      Wait& wait = threads_[thread].wait;
      if (!goes_on(wait)) continue;
      wait.kind = WaitKind::none;
      ready_.push(thread);
      any = true;
    }
    return any;
  }

  void release_syncthreads() {
    if (diverged_) report_deadlock();
    arrived_ = 0;
    observer_.barrier();
    ready_.push_all(everyone_);
  }

  [[noreturn]] void report_deadlock() const {
    Report report;
    report.add("\"failure\":\"deadlock\",\"ctas\":[");
    describe_waits(report);
    report.add("],").send(false);
  }

  void describe_wait(Report& report, int thread, int waiting) const;

  void check_copy(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, Site site) const {
    constexpr unsigned most_alignment = 16;
    unsigned alignment = bytes < most_alignment ? bytes : most_alignment;
    auto misaligned = [=](const void* p) { return reinterpret_cast<uintptr_t>(p) % alignment != 0; };
    const char* failure = source_bytes > bytes                   ? "copy_size"
                          : misaligned(smem) || misaligned(gmem) ? "misaligned"
                                                                 : nullptr;
    if (failure == nullptr) return;
    Report report;
    report.add("\"failure\":\"%s\",\"bytes\":%u,\"source_bytes\":%u,", failure, bytes, source_bytes);
    report.add("\"smem\":%lu,\"gmem\":%lu,", reinterpret_cast<uintptr_t>(smem), reinterpret_cast<uintptr_t>(gmem));
    report.add_site("site", site);
    describe(report);
    report.send(false);
  }

  // Reads the first and last byte: a copy outside its array fails where it is issued, not where it completes.
  static void touch(const void* start, unsigned bytes) {
    auto* memory = static_cast<const volatile unsigned char*>(start);
    (void)memory[0];
    (void)memory[bytes - 1];
  }

  const Launch& launch_;
  const Kernel& kernel_;
  Turns* turns_;
  int place_;
  std::vector<Thread> threads_;
  Stacks stacks_;
  SharedMemory smem_;
  Context outside_;
  tilewright_index index_{};
  Random random_{0};
  std::vector<int> everyone_;
  ReadyQueue ready_;
  Warps warps_;
  NamedBarriers named_barriers_;
  Mbarriers mbarriers_;
  int current_ = none, exited_ = 0, arrived_ = 0;
  int fruitless_ = 0;      // how often in a row threads have asked in vain whether an mbarrier's phase is over
  int arriving_line_ = 0;  // where the first to arrive at the barrier now filling waits
  bool diverged_ = false;
  bool is_stuck_ = false;  // no thread can run until another CTA has
  Site call_site_;
  Observer observer_;
  TensorMemory tensor_memory_;
  Warpgroups warpgroups_;
  RegisterPool registers_;
};

// The CTA that the calling OS thread runs.
inline thread_local Cta* this_cta = nullptr;

inline void Cta::thread_main() {
  this_cta->kernel_.run(this_cta->launch_.args.data());
  this_cta->end_thread();  // looked up again: a kernel may have written over what is kept of its caller
}

// The current thread's kernel has returned.
inline void Cta::end_thread() {
  Thread& thread = threads_[current_];
  thread.copies.finish(arrive_for_copies());
  tensor_memory_.leave();
  warpgroups_.leave();
  observer_.stop(current_, true);
  warps_.leave(*this, current_);
  thread.exited = true;
  if (++exited_ == launch_.threads()) {
    tensor_memory_.finish();
    registers_.finish(*this);
  }
  run_next();
}

inline unsigned Cta::smem_address(const void* address, const void* caller) const {
  auto byte = reinterpret_cast<uintptr_t>(address);
  Extent dynamic = smem_.dynamic_extent();
  constexpr uintptr_t most = 1 << 18;  // what a descriptor can say
  bool is_dynamic = dynamic.holds(byte);
  if (is_dynamic && byte - dynamic.start < most) return static_cast<unsigned>(byte - dynamic.start);
  Report report;
  report.add("\"failure\":\"rule\",\"text\":")
      .add_string(is_dynamic ? "smem_address of what lies beyond 256 KiB, which wgmma's descriptors cannot say"
                             : "smem_address of what is not in dynamic shared memory: wgmma's operands must be")
      .add(",\"code_offset\":%u,", code_site(caller));
  describe(report);
  report.send(false);
}
