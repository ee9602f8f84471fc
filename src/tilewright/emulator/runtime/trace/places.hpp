// Where accesses may lie, and what is remembered of each place. Owns the shadows of a CTA's shared memory and of the
// global arrays; what follows from what they remember is checker.hpp's.
#pragma once

#include "findings.hpp"

// A stretch of memory that is accessed at once.
struct Stretch {
  uintptr_t address;
  unsigned bytes;
  uint32_t site;
  Kind kind;
  Space space;
};

class Places {
 public:
  Places(const TraceRequest& request, Findings& findings) : findings_(findings), globals_(request.globals.size()) {}

  void begin_cta(const Arrays& arrays) {
    static_.reset(arrays.static_smem().bytes);
    dynamic_.reset(arrays.dynamic_smem().bytes);
  }

  // `visit(cell, offset in the array)` for each cell, unless the stretch lies outside its array or nobody writes there.
  template <typename Visit>
  void each_cell(const Arrays& arrays, ArrayId array, const Stretch& stretch, const Deed& now, Visit visit) {
    auto offset = static_cast<long>(stretch.address - arrays.start(array));
    if (!check(arrays, array, offset, stretch, now)) return;
    Shadow* shadow = shadow_of(arrays, array);
    if (shadow == nullptr) return;
    uintptr_t base = array.space == Space::shared_static ? arrays.static_smem().start : arrays.start(array);
    auto ahead = static_cast<long>(arrays.start(array) - base);
    shadow->each(stretch.address - base, stretch.bytes,
                 [&](Cell& cell, size_t at) { visit(cell, static_cast<long>(at) - ahead); });
  }

 private:
  // False when the access lies outside its array.
  bool check(const Arrays& arrays, ArrayId array, long offset, const Stretch& stretch, const Deed& now) {
    bool vector = !by_async_proxy(stretch.kind) && (stretch.bytes & (stretch.bytes - 1)) == 0;
    if (vector && stretch.address % stretch.bytes != 0)
      findings_.tell(Flaw::misaligned, array, offset, stretch.bytes, now);
    if (offset < 0 || static_cast<size_t>(offset) + stretch.bytes > arrays.bytes(array)) {
      findings_.tell(Flaw::out_of_bounds, array, offset, stretch.bytes, now);
      return false;
    }
    if (array.space == Space::global && in_padding(arrays.request().globals[static_cast<size_t>(array.number)].matrix,
                                                   static_cast<size_t>(offset), stretch.bytes))
      findings_.tell(Flaw::padding, array, offset, stretch.bytes, now);
    return true;
  }

  static bool in_padding(const MatrixShape& matrix, size_t offset, unsigned bytes) {
    if (matrix.rows == 0) return false;
    if (matrix.batch_stride != 0) offset %= matrix.batch_stride;
    return offset / matrix.row_stride >= matrix.rows || offset % matrix.row_stride + bytes > matrix.row_bytes;
  }

  Shadow* shadow_of(const Arrays& arrays, ArrayId array) {
    if (array.space == Space::shared_static) return &static_;
    if (array.space == Space::shared_dynamic) return &dynamic_;
    const GlobalArray& global = arrays.request().globals[static_cast<size_t>(array.number)];
    if (!global.writable) return nullptr;
    Shadow& shadow = globals_[static_cast<size_t>(array.number)];
    if (shadow.empty()) shadow.reset(global.bytes);
    return &shadow;
  }

  Findings& findings_;
  Shadow static_, dynamic_;
  std::vector<Shadow> globals_;  // by slot
};
