// What the compiler's instrumentation calls at every access (-fsanitize=thread, on the compile step only) and at an
// index beyond its dimension (-fsanitize=bounds-strict), in place of the libraries that usually answer. Owns the names;
// what an access means is tracer.hpp's.
#pragma once

#include "../cta.hpp"

inline void trace_access(const void* address, unsigned bytes, Kind kind, const void* caller) {
  Cta* cta = this_cta;
  if (cta != nullptr && cta->running() && !cta->acts())
    cta->observer().access(cta->current(), reinterpret_cast<uintptr_t>(address), bytes, kind, cta->code_site(caller));
}

// A stretch of memory, as the widest accesses that its address and size allow.
inline void trace_range(const void* start, unsigned long bytes, Kind kind, const void* caller) {
  for (auto at = reinterpret_cast<uintptr_t>(start), end = at + bytes; at < end;) {
    unsigned width = 16;
    while (at % width != 0 || at + width > end) width /= 2;
    trace_access(reinterpret_cast<const void*>(at), width, kind, caller);
    at += width;
  }
}

// `kind` is atomic_load, or atomic for what stores too; `loads` is false where nothing is read.
inline void trace_atomic(const volatile void* address, unsigned bytes, Kind kind, int order, bool loads,
                         const void* caller) {
  trace_access(const_cast<const void*>(address), bytes, kind, caller);
  bool acquires = loads && order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
  bool releases = kind == Kind::atomic && order >= __ATOMIC_RELEASE;
  Cta* cta = this_cta;
  if (cta != nullptr && cta->running())
    cta->observer().synchronise(cta->current(), reinterpret_cast<uintptr_t>(address), acquires, releases);
}

// As the compiler lays out what it says of an index: where it stands in the source, and two types.
struct TypeText {
  uint16_t kind, info;  // of an integer: 2 · log2(bits) + (1 if signed)
  char name[1];
};
struct BadIndex {
  const char* file;
  uint32_t line, column;
  const TypeText *array, *index;
};

inline void trace_index(const BadIndex& where, uintptr_t value, const void* caller) {
  Cta* cta = this_cta;
  if (cta == nullptr || !cta->running()) return;
  unsigned unused_bits = 64 - (1u << (where.index->info >> 1));
  auto index = static_cast<long>(value << unused_bits);
  index = where.index->info & 1 ? index >> unused_bits : static_cast<long>(value);
  cta->observer().index(cta->current(), where.array->name, index, cta->code_site(caller));
}

#define TILEWRIGHT_CALLER __builtin_return_address(0)

#define TILEWRIGHT_PLAIN_HOOKS(bytes)                                                                               \
  void __tsan_read##bytes(void* address) { trace_access(address, bytes, Kind::load, TILEWRIGHT_CALLER); }           \
  void __tsan_write##bytes(void* address) { trace_access(address, bytes, Kind::store, TILEWRIGHT_CALLER); }         \
  void __tsan_unaligned_read##bytes(void* address) { trace_access(address, bytes, Kind::load, TILEWRIGHT_CALLER); } \
  void __tsan_unaligned_write##bytes(void* address) { trace_access(address, bytes, Kind::store, TILEWRIGHT_CALLER); }

#define TILEWRIGHT_ATOMIC_FETCH(bits, name)                                                       \
  Bits##bits __tsan_atomic##bits##_##name(volatile Bits##bits* at, Bits##bits value, int order) { \
    trace_atomic(at, bits / 8, Kind::atomic, order, true, TILEWRIGHT_CALLER);                     \
    return __atomic_##name(at, value, __ATOMIC_SEQ_CST);                                          \
  }

#define TILEWRIGHT_ATOMIC_EXCHANGE(bits, name)                                                                       \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile Bits##bits* at, Bits##bits* expected, Bits##bits value, \
                                                    int order, int) {                                                \
    trace_atomic(at, bits / 8, Kind::atomic, order, true, TILEWRIGHT_CALLER);                                        \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }

#define TILEWRIGHT_ATOMIC_HOOKS(bits)                                                                 \
  Bits##bits __tsan_atomic##bits##_load(const volatile Bits##bits* at, int order) {                   \
    trace_atomic(at, bits / 8, Kind::atomic_load, order, true, TILEWRIGHT_CALLER);                    \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                     \
  }                                                                                                   \
  void __tsan_atomic##bits##_store(volatile Bits##bits* at, Bits##bits value, int order) {            \
    trace_atomic(at, bits / 8, Kind::atomic, order, false, TILEWRIGHT_CALLER);                        \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                                   \
  Bits##bits __tsan_atomic##bits##_exchange(volatile Bits##bits* at, Bits##bits value, int order) {   \
    trace_atomic(at, bits / 8, Kind::atomic, order, true, TILEWRIGHT_CALLER);                         \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                          \
  }                                                                                                   \
  Bits##bits __tsan_atomic##bits##_compare_exchange_val(volatile Bits##bits* at, Bits##bits expected, \
                                                        Bits##bits value, int order, int) {           \
    trace_atomic(at, bits / 8, Kind::atomic, order, true, TILEWRIGHT_CALLER);                         \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    return expected;                                                                                  \
  }                                                                                                   \
  TILEWRIGHT_ATOMIC_EXCHANGE(bits, strong)                                                            \
  TILEWRIGHT_ATOMIC_EXCHANGE(bits, weak)                                                              \
  TILEWRIGHT_ATOMIC_FETCH(bits, fetch_add)                                                            \
  TILEWRIGHT_ATOMIC_FETCH(bits, fetch_sub)                                                            \
  TILEWRIGHT_ATOMIC_FETCH(bits, fetch_and)                                                            \
  TILEWRIGHT_ATOMIC_FETCH(bits, fetch_or)                                                             \
  TILEWRIGHT_ATOMIC_FETCH(bits, fetch_xor)

using Bits32 = uint32_t;
using Bits64 = uint64_t;

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
TILEWRIGHT_PLAIN_HOOKS(1)
TILEWRIGHT_PLAIN_HOOKS(2)
TILEWRIGHT_PLAIN_HOOKS(4)
TILEWRIGHT_PLAIN_HOOKS(8)
TILEWRIGHT_PLAIN_HOOKS(16)
void __tsan_read_range(void* start, unsigned long bytes) { trace_range(start, bytes, Kind::load, TILEWRIGHT_CALLER); }
void __tsan_write_range(void* start, unsigned long bytes) { trace_range(start, bytes, Kind::store, TILEWRIGHT_CALLER); }
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  trace_range(from, bytes, Kind::load, TILEWRIGHT_CALLER);
  trace_range(to, bytes, Kind::store, TILEWRIGHT_CALLER);
  return memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  trace_range(from, bytes, Kind::load, TILEWRIGHT_CALLER);
  trace_range(to, bytes, Kind::store, TILEWRIGHT_CALLER);
  return memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  trace_range(to, bytes, Kind::store, TILEWRIGHT_CALLER);
  return memset(to, value, bytes);
}
void __ubsan_handle_out_of_bounds(const BadIndex* where, uintptr_t value) {
  trace_index(*where, value, TILEWRIGHT_CALLER);
}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
TILEWRIGHT_ATOMIC_HOOKS(32)
TILEWRIGHT_ATOMIC_HOOKS(64)
}
