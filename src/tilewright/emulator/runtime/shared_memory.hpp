// One CTA's shared memory: the static arrays, which are the kernel's for the calling OS thread, and the dynamic block.
// Owns where they lie; what is kept in them is not its business.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include "kernel.hpp"
#include "trace/request.hpp"

class SharedMemory {
 public:
  struct Place {
    const char* space;  // "static", "dynamic", or null where it is neither
    long offset;
  };

  SharedMemory(const Kernel& kernel, size_t dynamic_bytes)
      : static_(kernel.static_smem()), static_bytes_(kernel.static_smem_bytes()), dynamic_bytes_(dynamic_bytes) {
    allocate_dynamic();
  }

  // Nothing starts as zero: what a kernel reads before writing is NaN.
  void poison() {
    if (static_ != nullptr) memset(static_, 0xFF, static_bytes_);
    memset(dynamic_, 0xFF, dynamic_bytes_);
  }

  unsigned char* dynamic() const { return dynamic_; }
  Extent static_extent() const { return {reinterpret_cast<uintptr_t>(static_), static_bytes_, static_bytes_}; }
  Extent dynamic_extent() const {
    return {reinterpret_cast<uintptr_t>(dynamic_), dynamic_bytes_, static_cast<size_t>(end_ - dynamic_)};
  }

  Place place(const void* address) const {
    auto* byte = static_cast<const unsigned char*>(address);
    if (byte >= dynamic_ && byte < end_) return {"dynamic", byte - dynamic_};
    bool is_static = static_ != nullptr && byte >= static_ && byte < static_ + static_bytes_;
    return is_static ? Place{"static", byte - static_} : Place{nullptr, 0};
  }

  // The block that holds the address; an empty one where none does.
  Extent extent_of(const void* address) const {
    const char* space = place(address).space;
    return space == nullptr ? Extent{} : *space == 'd' ? dynamic_extent() : static_extent();
  }

  bool is_past_end(const void* address) const { return address >= end_ && address < end_ + guard_bytes; }

 private:
  static constexpr size_t alignment_bytes = 1024, unit_bytes = 64 << 10, guard_bytes = 64 << 10;

  // The dynamic block ends where pages that cannot be touched begin, so that an access beyond it faults.
  void allocate_dynamic() {
    size_t bytes = (dynamic_bytes_ + alignment_bytes - 1) & ~(alignment_bytes - 1);
    size_t mapped_bytes = (bytes + unit_bytes - 1) & ~(unit_bytes - 1);
    void* memory = mmap(nullptr, mapped_bytes + guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail_setup("no memory for dynamic shared memory", "mmap failed");
    if (mapped_bytes != 0) mprotect(memory, mapped_bytes, PROT_READ | PROT_WRITE);
    end_ = static_cast<unsigned char*>(memory) + mapped_bytes;
    dynamic_ = end_ - bytes;
  }

  unsigned char* static_;
  size_t static_bytes_, dynamic_bytes_;
  unsigned char *dynamic_ = nullptr, *end_ = nullptr;
};
