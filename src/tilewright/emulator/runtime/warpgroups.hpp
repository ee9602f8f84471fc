// wgmma: the 128 threads of a warpgroup meet to issue a product, which runs no sooner than a wait that covers it,
// unless the schedule says at once. Owns who has come, what is issued, committed and waited for, and when threads may
// change accumulators: before a fence, and never from issue to wait.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "accumulators.hpp"
#include "observer.hpp"
#include "range.hpp"
#include "shared_memory.hpp"
#include "wait.hpp"
#include "wgmma_ranges.hpp"
#include "wgmma_rules.hpp"

using WgmmaCall = tilewright_wgmma_call;

class Warpgroups {
 public:
  static constexpr int group_threads = WgmmaProduct::threads, group_warps = 4, lanes = 32;

  Warpgroups(Threads& threads, const SharedMemory& smem, Observer& observer, Random& random, Completion completion)
      : threads_(threads), smem_(smem), observer_(observer), random_(random), completion_(completion) {}

  // Before each CTA: nothing issued, nobody waiting.
  void reset() {
    groups_.clear();
    groups_.resize(static_cast<size_t>(threads_.count() + group_threads - 1) / group_threads);
  }

  // The current thread joins its warpgroup's product; returns when all have.
  void multiply(const WgmmaCall& call, Site site, uint32_t code_site) {
    int thread = threads_.current(), first = thread - thread % group_threads, member = thread % group_threads;
    Group& group = group_of(thread);
    if (first + group_threads > threads_.count())
      threads_.refuse(site, "wgmma: a warpgroup is %d threads from a multiple of %d on; thread %d's has only %d",
                      group_threads, group_threads, thread, threads_.count() - first);
    if (group.arrived == 0) group.call = call, group.site = site;
    check_same(group, call, site);
    if (!group.members[member].is_fenced)
      threads_.refuse(site, "wgmma without a wgmma_fence before it: registers written before may not be seen");
    group.d[member] = call.d;
    if (++group.arrived < group_threads) {
      threads_.block({WaitKind::warpgroup, 0, static_cast<uintptr_t>(first), site});
      return;
    }
    group.arrived = 0;
    for (int warp = 0; warp < group_warps; ++warp) threads_.met(first + warp * lanes, ~0u, true, false);
    issue(group, first, code_site);
    threads_.wake(WaitKind::warpgroup, static_cast<uintptr_t>(first), first, first + group_threads);
  }

  // Changes that the current thread has made to accumulators are seen by the products that follow.
  void fence() {
    int member = threads_.current() % group_threads;
    Group& group = group_of(threads_.current());
    Member& mine = group.members[member];
    mine.is_fenced = true;
    for (Accumulators& sums : group.accumulators)
      if (sums.last <= mine.waited) sums.note(member);
  }

  void commit(Site site) {
    Group& group = group_of(threads_.current());
    size_t number = group.members[threads_.current() % group_threads].commits++;
    if (number == group.ends.size()) group.ends.push_back(group.issued);
    if (group.ends[number] != group.issued)
      threads_.refuse(site,
                      "wgmma_commit: the threads of a warpgroup close different groups: %lu products were issued "
                      "at one's, %lu at another's",
                      group.ends[number], group.issued);
    observer_.commit_wgmma(threads_.current());
  }

  void wait(unsigned pending) {
    int member = threads_.current() % group_threads;
    Group& group = group_of(threads_.current());
    Member& mine = group.members[member];
    uint64_t end = mine.commits > pending ? group.ends[mine.commits - 1 - pending] : 0;
    if (end > mine.waited) {
      for (const Accumulators& sums : group.accumulators)
        if (sums.last > mine.waited) check_untouched(sums, member, threads_.current());
      run_until(group, end, threads_.current() - member);
      mine.waited = end;
    }
    observer_.wait_wgmma(threads_.current(), pending);
  }

  // The current thread ends.
  void leave() {
    Group& group = group_of(threads_.current());
    const Member& mine = group.members[threads_.current() % group_threads];
    if (mine.waited < group.issued)
      threads_.refuse(group.site, "wgmma whose end is never waited for: its thread ends while it may still run; %s",
                      mine.commits == 0 || group.ends[mine.commits - 1] < group.issued
                          ? "close its group with wgmma_commit, then wgmma_wait<0>"
                          : "wgmma_wait<0> first");
  }

  void describe(Report& report, int thread) const {
    const Group& group = groups_[static_cast<size_t>(thread / group_threads)];
    report.add("\"warpgroup\":%d,\"arrived\":%d,\"expected\":%d,", thread / group_threads, group.arrived,
               group_threads);
  }

 private:
  struct Member {
    bool is_fenced = false;
    size_t commits = 0;   // groups closed
    uint64_t waited = 0;  // products that a wait has covered
  };
  struct Product {
    WgmmaOperand a, b;
    WgmmaElement element;
    int cols;
    bool accumulates;
    size_t accumulators;
    Site site;
  };
  struct Group {
    int arrived = 0;
    WgmmaCall call{};
    Site site;  // of the newest product
    float* d[group_threads];
    Member members[group_threads];
    std::vector<Accumulators> accumulators;
    std::deque<Product> pending;  // issued, not yet run
    uint64_t issued = 0;
    std::vector<uint64_t> ends;  // products issued when each group was closed
  };

  Group& group_of(int thread) { return groups_[static_cast<size_t>(thread / group_threads)]; }

  void check_same(const Group& group, const WgmmaCall& call, Site site) const {
    if (group.site.line != site.line)
      threads_.refuse(site, "threads of one warpgroup meet at different products: wgmma here and at line %d",
                      group.site.line);
    const WgmmaCall& first = group.call;
    if (first.a != call.a || first.b != call.b || first.n != call.n || first.accumulates != call.accumulates)
      threads_.refuse(site,
                      "threads of one warpgroup bring different operands: A %#llx, B %#llx, N %d, accumulates %d "
                      "here and A %#llx, B %#llx, N %d, accumulates %d from the first",
                      call.a, call.b, call.n, call.accumulates, first.a, first.b, first.n, first.accumulates);
  }

  void issue(Group& group, int first, uint32_t code_site) {
    const WgmmaCall& call = group.call;
    auto element = static_cast<WgmmaElement>(call.element);
    WgmmaOperand a{call.a, WgmmaProduct::rows, element_bytes(element), call.a_transposed != 0};
    WgmmaOperand b{call.b, call.n, element_bytes(element), call.b_transposed != 0};
    size_t smem_bytes = smem_.dynamic_extent().bytes;
    check_operand(threads_, a, 'A', call.a, smem_bytes, group.site);
    check_operand(threads_, b, 'B', call.b, smem_bytes, group.site);
    size_t at = accumulators_of(group);
    Accumulators& sums = group.accumulators[at];
    for (int member = 0; member < group_threads; ++member)
      if (sums.last <= group.members[member].waited) check_fenced(sums, member, first + member, group.site);
    if (observes) {
      std::vector<Range> a_ranges = ranges_of(a, smem_.dynamic()), b_ranges = ranges_of(b, smem_.dynamic());
      observer_.wgmma(first, a_ranges.data(), a_ranges.size(), b_ranges.data(), b_ranges.size(), code_site);
    }
    sums.last = ++group.issued;
    group.pending.push_back({a, b, element, call.n, call.accumulates != 0, at, group.site});
    if (completion_ == Completion::random && (random_.next() & 1)) run_until(group, group.issued, first);
  }

  // Which registers the call's are: known ones, or new ones in place of any they overlap.
  size_t accumulators_of(Group& group) {
    int count = group.call.n / 2;
    size_t place = group.accumulators.size();
    for (size_t i = 0; i < group.accumulators.size(); ++i) {
      if (group.accumulators[i].are(group.d, count)) return i;
      if (!group.accumulators[i].overlap(group.d, count)) continue;
      if (is_pending(group, i))
        threads_.refuse(group.site,
                        "wgmma adds to part of another product's accumulators, which may still run: "
                        "wgmma_wait<0> first");
      place = i;
    }
    if (place == group.accumulators.size())
      group.accumulators.emplace_back(group.d, count);
    else
      group.accumulators[place] = {group.d, count};
    return place;
  }

  static bool is_pending(const Group& group, size_t accumulators) {
    for (const Product& product : group.pending)
      if (product.accumulators == accumulators) return true;
    return false;
  }

  // Runs the oldest products, so that `end` of all that were issued have run.
  void run_until(Group& group, uint64_t end, int first) {
    while (group.issued - group.pending.size() < end) {
      size_t at = group.pending.front().accumulators;
      Accumulators& sums = group.accumulators[at];
      for (int member = 0; member < group_threads; ++member) check_untouched(sums, member, first + member);
      arithmetic_->gather(sums.registers(), sums.columns());
      for (; group.issued - group.pending.size() < end && group.pending.front().accumulators == at;
           group.pending.pop_front()) {
        const Product& next = group.pending.front();
        arithmetic_->multiply(smem_.dynamic(), next.a, next.b, next.element, next.cols, next.accumulates);
      }
      arithmetic_->scatter(sums.registers(), sums.columns());
      sums.note_all();
    }
  }

  void check_fenced(const Accumulators& sums, int member, int thread, Site site) {
    if (sums.are_as_noted(member)) return;
    threads_.act_as(thread);
    threads_.refuse(site, "wgmma reads accumulators that threads have changed since the last wgmma_fence");
  }

  void check_untouched(const Accumulators& sums, int member, int thread) {
    if (sums.are_as_noted(member)) return;
    threads_.act_as(thread);
    threads_.refuse(group_of(thread).site, "wgmma's accumulators are changed while it may still run: wgmma_wait first");
  }

  Threads& threads_;
  const SharedMemory& smem_;
  Observer& observer_;
  Random& random_;
  Completion completion_;
  std::vector<Group> groups_;
  std::unique_ptr<WgmmaProduct> arithmetic_ = std::make_unique<WgmmaProduct>();
};
