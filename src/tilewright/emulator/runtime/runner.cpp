// The runner: a child process that runs one launch and prints one line of JSON. Owns the process, its device
// memory and its OS threads, which stand for SMs and take CTAs one by one.

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "calls.hpp"
#include "faults.hpp"
#ifdef TILEWRIGHT_TRACE
#include "trace/hooks.hpp"
#endif

namespace {

constexpr int most_stack_mappings = 60000;  // below the kernel's usual 65530 mappings for a process

struct Grid {
  const Launch& launch;
  const Kernel& kernel;
  std::vector<uint64_t> order;  // empty: ascending
  std::atomic<uint64_t> next{0};
  Turns* turns = nullptr;  // null: CTAs never wait for each other, and SMs run at once
};

struct Sm {
  Grid& grid;
  int place;
  pthread_t os_thread{};
};

void* run_sm(void* data) {
  auto& sm = *static_cast<Sm*>(data);
  Grid& grid = sm.grid;
  use_signal_stack();
  Cta cta(grid.launch, grid.kernel, grid.turns, sm.place);
  this_cta = &cta;
  if (grid.turns != nullptr) grid.turns->begin(sm.place);
  for (uint64_t i; (i = grid.next++) < grid.launch.ctas();) cta.run(grid.order.empty() ? i : grid.order[i]);
  cta.observer().finish();
  if (grid.turns != nullptr) grid.turns->end(sm.place);
  this_cta = nullptr;
  return nullptr;
}

void map_memory(const Launch& launch) {
  for (const Mapping& mapping : launch.mappings) {
    int access = mapping.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* wanted = reinterpret_cast<void*>(mapping.address);
    int flags = MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE;
    if (mmap(wanted, mapping.bytes, access, flags, mapping.fd, 0) != wanted)
      fail_setup("device memory cannot be mapped at its address", strerror(errno));
  }
}

int worker_count(const Launch& launch) {
  uint64_t most = most_stack_mappings / (2 * static_cast<uint64_t>(launch.threads()));
  uint64_t useful = most < launch.ctas() ? most : launch.ctas();
  uint64_t asked = static_cast<uint64_t>(launch.workers);
  return static_cast<int>(asked < useful ? asked : useful);
}

long now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}

// Waits for every SM to end. At the time limit the one that runs reports where it is.
void join(std::vector<Sm>& sms, const Turns* turns, long limit_ms) {
  timespec limit{};
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += limit_ms / 1000;
  limit.tv_nsec += limit_ms % 1000 * 1000000;
  if (limit.tv_nsec >= 1000000000) ++limit.tv_sec, limit.tv_nsec -= 1000000000;
  for (const Sm& sm : sms) {
    if (pthread_timedjoin_np(sm.os_thread, nullptr, &limit) == 0) continue;
    const Sm& running = turns == nullptr ? sm : sms[static_cast<size_t>(turns->holder())];
    pthread_kill(running.os_thread, time_limit_signal);
    for (;;) pause();
  }
}

void run_grid(const Launch& launch, const Kernel& kernel) {
  Grid grid{launch, kernel, {}, {0}};
  Random random(launch.seed, ~uint64_t{0});
  if (launch.order != Order::ascending) fill_order(grid.order, launch.ctas(), launch.order, random);
  int places = worker_count(launch);
  Turns turns(launch, grid.order, grid.next, places);
  if (kernel.waits_across_ctas()) grid.turns = &turns;
  std::vector<Sm> sms;
  for (int i = 0; i < places; ++i) sms.push_back({grid, i});
  for (Sm& sm : sms)
    if (pthread_create(&sm.os_thread, nullptr, run_sm, &sm) != 0) fail_setup("no OS thread", strerror(errno));
  join(sms, grid.turns, launch.time_limit_ms);
  Observer::write_totals(launch);
}

void limit_process() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

}  // namespace

int main() {
  Report::open_channel();
  limit_process();
  catch_faults();
  std::vector<char> text = read_all(0);
  Launch launch;
  if (const char* bad = parse_launch(text.data(), launch)) fail_setup("the launch makes no sense", bad);
  Kernel kernel = Kernel::load(launch.kernel);
  if (kernel.args_bytes() != launch.args_bytes) {
    Report report;
    report.add("\"failure\":\"args\",\"expected\":%u,\"got\":%zu,", kernel.args_bytes(), launch.args_bytes);
    report.send(false);
  }
  map_memory(launch);
  long start = now_ns();
  run_grid(launch, kernel);
  long elapsed = now_ns() - start;
  Report report;
  report.add("\"kernel_ns\":%ld,\"ctas\":%lu,", elapsed, launch.ctas()).send(true);
}
