// Turns a signal raised by a kernel into the runner's report. Owns the handler; which array an address
// belongs to is the parent's knowledge.
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "describe.hpp"

struct Fault {
  uintptr_t instruction = 0;
  const char* access = "unknown";
};

inline Fault read_fault([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  constexpr unsigned long wrote = 2;
  auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return {static_cast<uintptr_t>(registers[REG_RIP]), registers[REG_ERR] & wrote ? "write" : "read"};
#elif defined(__aarch64__)
  return {static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc), "unknown"};
#else
  return {};
#endif
}

// Where the fault lies, as far as the runner knows its own memory.
inline const char* fault_region(const Cta& cta, const void* address) {
  if (cta.in_stack_guard(address)) return "stack_guard";
  return cta.past_dynamic_smem(address) ? "past_dynamic_smem" : "elsewhere";
}

[[noreturn]] inline void on_fault(int number, siginfo_t* info, void* context) {
  Fault fault = read_fault(context);
  // A misaligned vector access is a general protection fault on x86-64, which has no address.
  bool protection = number == SIGSEGV && info->si_code == SI_KERNEL;
  bool misaligned = protection || (number == SIGBUS && info->si_code == BUS_ADRALN);
  Report report;
  report.add("\"failure\":\"%s\",\"signal\":%d,", misaligned ? "misaligned" : "fault", number);
  report.add("\"address\":%lu,\"access\":\"%s\",", reinterpret_cast<uintptr_t>(info->si_addr), fault.access);
  if (this_cta != nullptr && this_cta->running()) {
    report.add("\"region\":\"%s\",", fault_region(*this_cta, info->si_addr));
    report.add("\"code_offset\":%ld,", this_cta->kernel().code_offset(fault.instruction));
    report.add_site("site", this_cta->call_site());
    this_cta->describe(report);
  }
  report.send(false);
}

// Sent to an OS thread whose launch has taken too long.
constexpr int time_limit_signal = SIGALRM;

[[noreturn]] inline void on_time_limit(int, siginfo_t*, void* context) {
  Report report;
  report.add("\"failure\":\"time_limit\",");
  if (this_cta != nullptr && this_cta->running()) {
    report.add("\"code_offset\":%ld,", this_cta->kernel().code_offset(read_fault(context).instruction));
    report.add_site("site", this_cta->call_site()).add_site("waited_at", this_cta->last_wait_site());
    this_cta->describe(report);
  }
  report.send(false);
}

// Faults must be handled off the fiber's stack, which may be what overflowed. Once for each OS thread.
inline void use_signal_stack() {
  constexpr size_t bytes = 64 << 10;
  stack_t stack{};
  stack.ss_sp = malloc(bytes);
  stack.ss_size = bytes;
  if (stack.ss_sp == nullptr || sigaltstack(&stack, nullptr) != 0) fail_setup("no signal stack", "sigaltstack failed");
}

inline void catch_faults() {
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigaction(number, &action, nullptr);
  action.sa_sigaction = on_time_limit;
  sigaction(time_limit_signal, &action, nullptr);
}
