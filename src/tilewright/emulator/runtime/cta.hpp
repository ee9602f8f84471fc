// One CTA: its threads as fibers of the calling OS thread, who runs next, what each waits for.
// A wait is a record of kind, object and source line, so that a deadlock can be told in the kernel's own words.
#pragma once

#include <vector>

#include "async_copy.hpp"
#include "context.hpp"
#include "kernel.hpp"
#include "observer.hpp"
#include "stacks.hpp"

enum class WaitKind { syncthreads };

struct Wait {
  WaitKind kind;
  const void* object;
  Site site;

  bool same_as(const Wait& other) const {
    return kind == other.kind && object == other.object && site.line == other.site.line;
  }
};

struct Thread {
  Context context;
  tilewright_index index;
  Wait wait;  // the last one: that of a thread that cannot run
  bool exited;
  AsyncCopies copies;
};

class Cta {
 public:
  Cta(const Launch& launch, const Kernel& kernel)
      : launch_(launch), kernel_(kernel), threads_(launch.threads()), observer_(launch, launch.threads()) {
    if (!stacks_.allocate(launch.threads())) fail_setup("no memory for the threads' stacks", "mmap failed");
    allocate_dynamic_smem();
    for (int i = 0; i < launch.threads(); ++i) {
      unsigned linear = static_cast<unsigned>(i), row = linear / launch.block.x;
      threads_[i].index = {linear % launch.block.x, row % launch.block.y, row / launch.block.y};
    }
  }
  Cta(const Cta&) = delete;
  Cta& operator=(const Cta&) = delete;

  // Runs CTA number `linear` of the grid to its end on the calling OS thread.
  void run(uint64_t linear) {
    uint64_t row = linear / launch_.grid.x;
    index_ = {unsigned(linear % launch_.grid.x), unsigned(row % launch_.grid.y), unsigned(row / launch_.grid.y)};
    random_ = Random(launch_.seed, linear);
    kernel_.poison_shared();
    memset(dynamic_smem_, 0xFF, launch_.dynamic_smem_bytes);
    observer_.begin_cta(linear, static_smem(), dynamic_extent());
    exited_ = arrived_ = 0;
    diverged_ = false;
    for (int i = 0; i < launch_.threads(); ++i) {
      threads_[i].exited = false;
      prepare_context(threads_[i].context, stacks_.top(i), stacks_.usable_bytes(), thread_main);
    }
    ready_all();
    current_ = ready_[next_ready_++];
    switch_context(outside_, threads_[current_].context);
    current_ = none;
  }

  void syncthreads(Site site) {
    Wait& wait = threads_[current_].wait = {WaitKind::syncthreads, nullptr, site};
    observer_.stop(current_, false);
    if (arrived_++ == 0) arriving_ = wait;
    diverged_ |= !wait.same_as(arriving_);
    if (arrived_ == launch_.threads()) release_syncthreads();
    run_next();
  }

  void issue_copy(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, Site site, const void* caller) {
    check_copy(smem, gmem, bytes, source_bytes, site);
    copy_site_ = site;
    observer_.copy(current_, smem, gmem, bytes, source_bytes, code_site(caller));
    touch(smem, bytes);
    if (source_bytes != 0) touch(gmem, source_bytes);
    threads_[current_].copies.issue(smem, gmem, bytes, source_bytes, launch_.completion, random_);
    copy_site_ = {};
  }
  void commit_copies() {
    threads_[current_].copies.commit();
    observer_.commit_copies(current_);
  }
  void wait_copies(unsigned pending_groups) {
    threads_[current_].copies.wait(pending_groups);
    observer_.wait_copies(current_, pending_groups);
  }

  bool running() const { return current_ != none; }
  const Launch& launch() const { return launch_; }
  const Kernel& kernel() const { return kernel_; }
  Observer& observer() { return observer_; }
  int current() const { return current_; }
  // The instruction before `caller`, a return address in the kernel, as an offset in its shared object.
  uint32_t code_site(const void* caller) const { return kernel_.site(reinterpret_cast<uintptr_t>(caller) - 1); }
  tilewright_index index() const { return index_; }
  tilewright_index thread_index() const { return threads_[current_].index; }
  unsigned char* dynamic_smem() const { return dynamic_smem_; }
  Site copy_site() const { return copy_site_; }
  bool in_stack_guard(const void* address) const { return stacks_.in_guard(current_, address); }
  bool past_dynamic_smem(const void* address) const {
    return address >= dynamic_smem_end_ && address < dynamic_smem_end_ + Stacks::guard_bytes;
  }

  // The part of a report that says which thread of which CTA.
  void describe(Report& report) const {
    report.add_index("cta", index_).add_index("block", launch_.block);
    if (running()) report.add_index("thread", thread_index());
  }

 private:
  static constexpr int none = -1;
  static constexpr size_t dynamic_smem_alignment_bytes = 1024;

  static void thread_main();

  // Ends where a page that cannot be touched begins, so that an access beyond it faults.
  void allocate_dynamic_smem() {
    constexpr size_t mask = dynamic_smem_alignment_bytes - 1;
    size_t bytes = (launch_.dynamic_smem_bytes + mask) & ~mask;
    size_t pages_bytes = (bytes + 0xFFFF) & ~size_t{0xFFFF};
    void* memory = mmap(nullptr, pages_bytes + Stacks::guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail_setup("no memory for dynamic shared memory", "mmap failed");
    dynamic_smem_end_ = static_cast<unsigned char*>(memory) + pages_bytes;
    if (pages_bytes != 0) mprotect(memory, pages_bytes, PROT_READ | PROT_WRITE);
    dynamic_smem_ = dynamic_smem_end_ - bytes;
  }

  Extent static_smem() const {
    return {reinterpret_cast<uintptr_t>(kernel_.shared()), kernel_.shared_bytes(), kernel_.shared_bytes()};
  }
  Extent dynamic_extent() const {
    return {reinterpret_cast<uintptr_t>(dynamic_smem_), launch_.dynamic_smem_bytes,
            static_cast<size_t>(dynamic_smem_end_ - dynamic_smem_)};
  }

  // Only a random order is another one each time.
  void ready_all() {
    bool same_again = launch_.order != Order::random && !ready_.empty();
    if (!same_again) fill_order(ready_, launch_.threads(), launch_.order, random_);
    next_ready_ = 0;
  }

  void run_next() {
    if (next_ready_ == ready_.size()) {
      if (exited_ < launch_.threads()) report_deadlock();
      switch_context(threads_[current_].context, outside_);
      return;
    }
    int previous = current_;
    current_ = ready_[next_ready_++];
    constexpr size_t ahead = 2;
    if (next_ready_ + ahead < ready_.size()) prefetch_context(threads_[ready_[next_ready_ + ahead]].context);
    if (current_ != previous) switch_context(threads_[previous].context, threads_[current_].context);
  }

  void release_syncthreads() {
    if (diverged_) report_deadlock();
    arrived_ = 0;
    observer_.barrier();
    ready_all();
  }

  [[noreturn]] void report_deadlock() {
    constexpr int most_groups = 8;
    Report report;
    report.add("\"failure\":\"deadlock\",\"exited\":%d,\"waits\":[", exited_);
    std::vector<bool> told(threads_.size());
    int groups = 0;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (told[i] || threads_[i].exited || groups == most_groups) continue;
      int count = 0;
      for (size_t j = i; j < threads_.size(); ++j)
        if (!threads_[j].exited && threads_[j].wait.same_as(threads_[i].wait)) told[j] = true, ++count;
      report.add("%s{\"kind\":\"syncthreads\",\"count\":%d,", groups++ == 0 ? "" : ",", count);
      report.add_index("first", threads_[i].index).add_site("site", threads_[i].wait.site).add("\"object\":0}");
    }
    report.add("],");
    describe(report);
    report.send(false);
  }

  void check_copy(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, Site site) const {
    auto misaligned = [bytes](const void* p) { return reinterpret_cast<uintptr_t>(p) % bytes != 0; };
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
  std::vector<Thread> threads_;
  Stacks stacks_;
  unsigned char *dynamic_smem_ = nullptr, *dynamic_smem_end_ = nullptr;
  Context outside_;
  tilewright_index index_{};
  Random random_{0};
  std::vector<int> ready_;
  size_t next_ready_ = 0;
  int current_ = none, exited_ = 0, arrived_ = 0;
  Wait arriving_{};  // the first to arrive at the barrier now filling
  bool diverged_ = false;
  Site copy_site_;
  Observer observer_;
};

// The CTA that the calling OS thread runs.
inline thread_local Cta* this_cta = nullptr;

inline void Cta::thread_main() {
  Cta& cta = *this_cta;
  cta.kernel_.run(cta.launch_.args.data());
  Thread& thread = cta.threads_[cta.current_];
  thread.copies.finish();
  cta.observer_.stop(cta.current_, true);
  thread.exited = true;
  ++cta.exited_;
  cta.run_next();
}
