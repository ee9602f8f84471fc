// Which array an address belongs to. Static shared arrays lie apart (compile/trace_layout.py puts a gap after each),
// so an address between two belongs to the nearer one, which it overran.
#pragma once

#include <stddef.h>

#include "access.hpp"
#include "request.hpp"

// `number` counts static arrays in the order the parent named them, and global ones by slot.
struct ArrayId {
  Space space;
  int number;

  bool operator==(const ArrayId& other) const { return space == other.space && number == other.number; }
};

class Arrays {
 public:
  explicit Arrays(const TraceRequest& request) : request_(request) {}

  // Where the CTA's shared memory lies.
  void place(Extent static_smem, Extent dynamic_smem) {
    static_smem_ = static_smem;
    dynamic_smem_ = dynamic_smem;
  }

  // Whether `address` is memory that arrays lie in; a thread's own stack, say, is not.
  bool classify(uintptr_t address, Space& space) const {
    if (static_smem_.holds(address)) {
      space = Space::shared_static;
      return !is_guard(address);
    }
    if (dynamic_smem_.holds(address))
      space = Space::shared_dynamic;
    else if (request_.slot_of(address) < request_.globals.size())
      space = Space::global;
    else
      return false;
    return true;
  }

  ArrayId find(Space space, uintptr_t address) const {
    if (space == Space::shared_dynamic) return {space, 0};
    if (space == Space::global) return {space, static_cast<int>(request_.slot_of(address))};
    size_t found = 0;
    for (size_t i = 1; i < request_.statics.size(); ++i)
      if (distance(request_.statics[i], address) < distance(request_.statics[found], address)) found = i;
    return {space, static_cast<int>(found)};
  }

  uintptr_t start(ArrayId array) const {
    if (array.space == Space::shared_dynamic) return dynamic_smem_.start;
    auto number = static_cast<size_t>(array.number);
    if (array.space == Space::global) return request_.globals[number].address;
    return number < request_.statics.size() ? static_smem_.start + request_.statics[number].offset : static_smem_.start;
  }

  size_t bytes(ArrayId array) const {
    if (array.space == Space::shared_dynamic) return dynamic_smem_.bytes;
    auto number = static_cast<size_t>(array.number);
    if (array.space == Space::global) return request_.globals[number].bytes;
    return number < request_.statics.size() ? request_.statics[number].bytes : static_smem_.bytes;
  }

  const Extent& static_smem() const { return static_smem_; }
  const Extent& dynamic_smem() const { return dynamic_smem_; }
  const TraceRequest& request() const { return request_; }

 private:
  bool is_guard(uintptr_t address) const {
    for (const StaticArray& guard : request_.guards)
      if (guard.holds(address - static_smem_.start)) return true;
    return false;
  }

  size_t distance(const StaticArray& array, uintptr_t address) const {
    uintptr_t first = static_smem_.start + array.offset, end = first + array.bytes;
    return address < first ? first - address : address < end ? 0 : address - end + 1;
  }

  const TraceRequest& request_;
  Extent static_smem_, dynamic_smem_;
};
