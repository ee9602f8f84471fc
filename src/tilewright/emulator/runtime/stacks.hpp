// The fibers' stacks: one mapping for each OS thread, a guard below every stack, reused by all its CTAs.
#pragma once

#include <stddef.h>
#include <sys/mman.h>

class Stacks {
 public:
  static constexpr size_t stack_bytes = 128 << 10;
  static constexpr size_t guard_bytes = 68 << 10;  // above 64 KiB, which is as far as a probing compiler steps

  bool allocate(int count) {
    void* memory = mmap(nullptr, count * stride_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    base_ = static_cast<unsigned char*>(memory);
    for (int i = 0; i < count; ++i)
      if (mprotect(base_ + i * stride_bytes + guard_bytes, stack_bytes, PROT_READ | PROT_WRITE) != 0) return false;
    return true;
  }

  // One past the highest byte fiber `i` may use. Tops are spread over a page, or all fibers' hot lines
  // would fall into the same few cache sets.
  unsigned char* top(int i) const {
    constexpr size_t spread_bytes = 4096, step_bytes = 320;
    return base_ + (i + 1) * stride_bytes - (i * step_bytes) % spread_bytes;
  }

  size_t usable_bytes() const { return stack_bytes - 4096; }

  bool in_guard(int i, const void* address) const {
    auto* guard = base_ + i * stride_bytes;
    return address >= guard && address < guard + guard_bytes;
  }

 private:
  static constexpr size_t stride_bytes = stack_bytes + guard_bytes;
  unsigned char* base_ = nullptr;
};
