// What is remembered of each word of memory: who wrote it last, who has read it since. Owns the cells; what they
// mean is checker.hpp's.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "access.hpp"
#include "clocks.hpp"

// One access in the past, or now. Clock 0: never.
struct Moment {
  Clock clock;
  uint32_t site;
  Actor actor;
  Kind kind;
};

// All zeros is memory that nobody has touched.
struct Cell {
  Moment write;
  uint32_t readers;  // of the phase; a place in Readers, 0 for none
  uint32_t phase;
  uint32_t cta;  // the one that touched it last, counted from 1
};

// Who read a cell since the last barrier for everyone; what was read before it is ordered for all.
class Readers {
 public:
  Readers() { clear(); }
  void clear() { nodes_.assign(1, {}); }

  void add(uint32_t& head, const Moment& reader) {
    const Moment& last = nodes_[head].reader;
    if (head != 0 && last.actor == reader.actor && last.clock == reader.clock && last.kind == reader.kind) return;
    nodes_.push_back({reader, head});
    head = static_cast<uint32_t>(nodes_.size() - 1);
  }

  template <typename Visit>
  void each(uint32_t head, Visit visit) const {
    for (; head != 0; head = nodes_[head].next) visit(nodes_[head].reader);
  }

 private:
  struct Node {
    Moment reader;
    uint32_t next;
  };
  std::vector<Node> nodes_;
};

// The cells of one stretch of memory: one for each four bytes, or for each byte once something smaller is accessed.
class Shadow {
 public:
  Shadow() = default;
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;
  ~Shadow() { free(cells_); }

  bool empty() const { return cells_ == nullptr; }

  // `bytes` of untouched memory.
  void reset(size_t bytes) {
    if (cells_ != nullptr && bytes == bytes_) {
      memset(cells_, 0, count() * sizeof(Cell));
      return;
    }
    free(cells_);
    bytes_ = bytes;
    cells_ = static_cast<Cell*>(calloc(count(), sizeof(Cell)));
  }

  // `visit(cell, offset)` for each cell of an access, which lies inside.
  template <typename Visit>
  void each(size_t offset, unsigned bytes, Visit visit) {
    if (((offset | bytes) & (cell_bytes_ - 1)) != 0) refine();
    for (size_t at = offset; at < offset + bytes; at += cell_bytes_) visit(cells_[at / cell_bytes_], at);
  }

 private:
  size_t count() const { return (bytes_ + cell_bytes_ - 1) / cell_bytes_ + 1; }

  void refine() {
    size_t coarse_bytes = cell_bytes_;
    cell_bytes_ = 1;
    auto* fine = static_cast<Cell*>(calloc(count(), sizeof(Cell)));
    for (size_t i = 0; i < bytes_; ++i) fine[i] = cells_[i / coarse_bytes];
    free(cells_);
    cells_ = fine;
  }

  Cell* cells_ = nullptr;
  size_t bytes_ = 0, cell_bytes_ = 4;
};
