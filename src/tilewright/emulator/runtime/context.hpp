// Switching between fibers on one OS thread. Owns registers and stack pointers; who runs next is cta.hpp's.
// x86-64 has its own switch of six registers. TILEWRIGHT_UCONTEXT, or another machine, uses ucontext.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__) && !defined(TILEWRIGHT_UCONTEXT)
#define TILEWRIGHT_UCONTEXT
#endif

#ifdef TILEWRIGHT_UCONTEXT

#include <ucontext.h>

struct Context {
  ucontext_t state;
};

inline void switch_context(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

inline void prefetch_context(const Context&) {}

// `entry` starts on the stack below `top` at the next switch to `context`, and must not return.
inline void prepare_context(Context& context, unsigned char* top, size_t bytes, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = top - bytes;
  context.state.uc_stack.ss_size = bytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

#else

struct Context {
  void* stack_pointer;
};

extern "C" void tilewright_switch(void** from, void* to);

// Jumps instead of returning: a return would be predicted to go back to the fiber that called.
asm(R"(
    .text
    .p2align 4
    .type tilewright_switch, @function
tilewright_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmpq *%rcx
    .size tilewright_switch, .-tilewright_switch
)");

inline void switch_context(Context& from, Context& to) { tilewright_switch(&from.stack_pointer, to.stack_pointer); }

// A CTA's stacks together exceed the first-level cache, so the top of one that runs soon is fetched beforehand.
inline void prefetch_context(const Context& context) {
  constexpr int line_bytes = 64, hot_lines = 4;
  for (int i = 0; i < hot_lines; ++i) __builtin_prefetch(static_cast<char*>(context.stack_pointer) + i * line_bytes);
}

// `entry` starts on the stack below `top` (16-byte aligned) at the next switch to `context`, and must not return.
inline void prepare_context(Context& context, unsigned char* top, size_t, void (*entry)()) {
  constexpr int saved_registers = 6;
  auto* slots = reinterpret_cast<uintptr_t*>(top) - 1;
  *slots = 0;  // where a return address would lie, so that `entry` finds the stack aligned as after a call
  *--slots = reinterpret_cast<uintptr_t>(entry);
  for (int i = 0; i < saved_registers; ++i) *--slots = 0;
  context.stack_pointer = slots;
}

#endif
