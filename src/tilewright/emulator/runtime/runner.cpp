// The runner: a child process that runs one launch and prints one line of JSON. Owns the process, its device
// memory and its OS threads, which stand for SMs and take CTAs one by one.

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

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
};

void* run_sm(void* data) {
  auto& grid = *static_cast<Grid*>(data);
  use_signal_stack();
  Cta cta(grid.launch, grid.kernel);
  this_cta = &cta;
  for (uint64_t i; (i = grid.next++) < grid.launch.ctas();) cta.run(grid.order.empty() ? i : grid.order[i]);
  cta.observer().finish();
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

void run_grid(const Launch& launch, const Kernel& kernel) {
  Grid grid{launch, kernel, {}, {0}};
  Random random(launch.seed, ~uint64_t{0});
  if (launch.order != Order::ascending) fill_order(grid.order, launch.ctas(), launch.order, random);
  std::vector<pthread_t> sms(static_cast<size_t>(worker_count(launch)));
  for (pthread_t& sm : sms)
    if (pthread_create(&sm, nullptr, run_sm, &grid) != 0) fail_setup("no OS thread", strerror(errno));
  for (pthread_t sm : sms) pthread_join(sm, nullptr);
  Observer::write_totals(launch);
}

void limit_process() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

}  // namespace

extern "C" {
tilewright_index tilewright_thread_index() noexcept { return this_cta->thread_index(); }
tilewright_index tilewright_block_index() noexcept { return this_cta->index(); }
tilewright_index tilewright_block_dim() noexcept { return this_cta->launch().block; }
tilewright_index tilewright_grid_dim() noexcept { return this_cta->launch().grid; }
unsigned char* tilewright_dynamic_smem() noexcept { return this_cta->dynamic_smem(); }
void tilewright_syncthreads(const char* file, int line) noexcept { this_cta->syncthreads({file, line}); }
void tilewright_cp_async(void* smem, const void* gmem, unsigned bytes, unsigned source_bytes, const char* file,
                         int line) noexcept {
  this_cta->issue_copy(smem, gmem, bytes, source_bytes, {file, line}, __builtin_return_address(0));
}
void tilewright_cp_async_commit() noexcept { this_cta->commit_copies(); }
void tilewright_cp_async_wait(unsigned pending_groups) noexcept { this_cta->wait_copies(pending_groups); }
}

int main() {
  Report::open_channel();
  limit_process();
  catch_faults();
  std::vector<char> text = read_all(0);
  Launch launch;
  if (const char* bad = parse_launch(text.data(), launch)) fail_setup("the launch makes no sense", bad);
  Kernel kernel = Kernel::load(launch.kernel);
  if (kernel.args_bytes() != launch.args.size()) {
    Report report;
    report.add("\"failure\":\"args\",\"expected\":%u,\"got\":%zu,", kernel.args_bytes(), launch.args.size());
    report.send(false);
  }
  map_memory(launch);
  long start = now_ns();
  run_grid(launch, kernel);
  long elapsed = now_ns() - start;
  Report report;
  report.add("\"kernel_ns\":%ld,\"ctas\":%lu,", elapsed, launch.ctas()).send(true);
}
