// What is remembered of each word of memory: who wrote it last, who has read it since. Owns the cells; what they
// mean is checker.hpp's.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "access.hpp"
#include "knowledge.hpp"

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
  uint32_t readers;       // threads, in this phase; a place in Readers, 0 for none
  uint32_t late_readers;  // asynchronous actors, whatever the phase; a place in other Readers
  uint32_t phase;
  uint32_t cta;  // the one that touched it last, counted from 1
};

// Lists of who read a cell since it was written. A thread's reads are ordered for all by the next barrier for everyone,
// with which its lists end; what reads beside the threads may not be over by then.
class Readers {
 public:
  Readers() { clear(); }
  void clear() {
    nodes_.assign(1, {});
    spare_ = 0;
  }

  void add(uint32_t& head, const Moment& reader) {
    const Moment& last = nodes_[head].reader;
    if (head != 0 && last.actor == reader.actor && last.clock == reader.clock && last.kind == reader.kind) return;
    push(head, reader);
  }

  // Of each actor its last read alone: who knows of that knows of those before.
  void add_last(uint32_t& head, const Moment& reader) {
    for (uint32_t at = head; at != 0; at = nodes_[at].next) {
      if (nodes_[at].reader.actor != reader.actor) continue;
      nodes_[at].reader = reader;
      return;
    }
    push(head, reader);
  }

  template <typename Visit>
  void each(uint32_t head, Visit visit) const {
    for (; head != 0; head = nodes_[head].next) visit(nodes_[head].reader);
  }

  // Ends a list, whose places are used again.
  void drop(uint32_t& head) {
    while (head != 0) {
      uint32_t next = nodes_[head].next;
      nodes_[head].next = spare_;
      spare_ = head;
      head = next;
    }
  }

 private:
  struct Node {
    Moment reader;
    uint32_t next;
  };

  void push(uint32_t& head, const Moment& reader) {
    if (spare_ == 0) {
      nodes_.push_back({reader, head});
      head = static_cast<uint32_t>(nodes_.size() - 1);
      return;
    }
    uint32_t at = spare_;
    spare_ = nodes_[at].next;
    nodes_[at] = {reader, head};
    head = at;
  }

  std::vector<Node> nodes_;
  uint32_t spare_ = 0;  // a list of places free for use
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
