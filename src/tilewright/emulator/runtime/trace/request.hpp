// What the parent wants traced, read from its `trace`, `static` and `array` lines.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <vector>

// A stretch of memory and how far it is mapped.
struct Extent {
  uintptr_t start = 0;
  size_t bytes = 0, mapped_bytes = 0;

  bool holds(uintptr_t address) const { return address - start < mapped_bytes; }
};

// A matrix inside an array, in bytes; what lies between its rows is padding. No rows: nothing declared.
struct MatrixShape {
  unsigned long batch_stride = 0, rows = 0, row_stride = 0, row_bytes = 0;
};

struct GlobalArray {
  unsigned long address = 0, bytes = 0;
  bool writable = false;
  MatrixShape matrix;
};

struct StaticArray {
  unsigned long offset, bytes;  // in the kernel's static shared memory

  bool holds(unsigned long at) const { return at - offset < bytes; }
};

struct TraceRequest {
  int output_fd = -1, events_fd = -1;
  bool counts = false, checks = false;
  unsigned long slots_address = 0;
  unsigned slot_bits = 0;                    // a slot is 2^slot_bits bytes
  std::vector<StaticArray> statics, guards;  // arrays of the source's; the compiler's own variables beside them
  std::vector<GlobalArray> globals;          // by slot

  size_t slot_of(uintptr_t address) const { return (address - slots_address) >> slot_bits; }

  bool parse_trace(const char* value) {
    int counted = 0, checked = 0;
    bool read = sscanf(value, "%d %d %d %d %lu %u", &output_fd, &events_fd, &counted, &checked, &slots_address,
                       &slot_bits) == 6;
    counts = counted != 0;
    checks = checked != 0;
    return read;
  }

  static bool parse_static(const char* value, std::vector<StaticArray>& into) {
    StaticArray array{};
    if (sscanf(value, "%lu %lu", &array.offset, &array.bytes) != 2) return false;
    into.push_back(array);
    return true;
  }

  bool parse_array(const char* value) {
    GlobalArray array;
    MatrixShape& shape = array.matrix;
    char mode[3] = "";
    if (sscanf(value, "%lu %lu %2s %lu %lu %lu %lu", &array.address, &array.bytes, mode, &shape.batch_stride,
               &shape.rows, &shape.row_stride, &shape.row_bytes) != 7)
      return false;
    array.writable = strcmp(mode, "rw") == 0;
    size_t slot = slot_of(array.address);
    if (globals.size() <= slot) globals.resize(slot + 1);
    globals[slot] = array;
    return true;
  }
};
