// A tensor map as the emulator's kernels are given it, and a box that is copied by it. Owns which bytes of a matrix and
// of shared memory belong together: bounds and swizzle. When a box is copied is tensor_memory.hpp's.
#pragma once

#include <stdint.h>
#include <string.h>

// In the order in which `run/tensor_map.py` writes its words. `span_bytes` is the swizzle's, 0 for none; with `rounds`
// float32 elements arrive as the nearest TF32 numbers, ties to even, as an H200 brings them.
struct EncodedMap {
  uint64_t address, rows, cols, row_stride_bytes, entries, entry_stride_bytes, box_rows, box_cols, element_bytes,
      span_bytes, rounds;

  static constexpr uint64_t chunk_bytes = 16, most_box = 256, most_size = uint64_t{1} << 32;

  static EncodedMap read(const void* words) {
    EncodedMap map;
    memcpy(&map, words, sizeof map);
    return map;
  }

  // Whether it can be what the host encoded, by TMA's own limits.
  bool is_valid() const {
    auto sized = [](uint64_t count, uint64_t most) { return count >= 1 && count <= most; };
    bool element = element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8;
    bool span = span_bytes == 0 || span_bytes == 32 || span_bytes == 64 || span_bytes == 128;
    return element && span && address != 0 && sized(rows, most_size) && sized(cols, most_size) &&
           sized(entries, most_size) && sized(box_rows, most_box) && sized(box_cols, most_box) &&
           row_bytes() % chunk_bytes == 0 && (address | row_stride_bytes | entry_stride_bytes) % chunk_bytes == 0;
  }

  unsigned row_bytes() const { return static_cast<unsigned>(box_cols * element_bytes); }
  unsigned box_bytes() const { return static_cast<unsigned>(box_rows) * row_bytes(); }
  unsigned alignment_bytes() const { return span_bytes == 0 ? 128 : 8 * static_cast<unsigned>(span_bytes); }
};

// Where the swizzle of this span keeps what would lie at `address` without it: 16-byte chunks change places within
// eight rows of the span.
inline uintptr_t swizzled(uintptr_t address, uint64_t span_bytes) {
  return span_bytes == 0 ? address : address ^ (address >> 3 & (span_bytes - EncodedMap::chunk_bytes));
}

// In place, `count` of them.
inline void round_to_tf32(unsigned char* elements, uint64_t count) {
  constexpr uint32_t dropped = (1u << 13) - 1, infinity = 0x7F800000;
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t pattern;
    memcpy(&pattern, elements + 4 * i, sizeof pattern);
    if ((pattern & ~(1u << 31)) >= infinity) continue;
    pattern += dropped / 2 + (pattern >> 13 & 1);
    pattern &= ~dropped;
    memcpy(elements + 4 * i, &pattern, sizeof pattern);
  }
}

// One box of the matrix, from (row, col) of a batch entry on, in shared memory from `smem` on.
struct Box {
  EncodedMap map;
  uintptr_t smem;
  int col, row, entry;

  // The part of a row that lies in the matrix: `bytes` from byte `first` of the box's row on; none for 0 bytes.
  struct Inside {
    unsigned char* gmem;
    unsigned first, bytes;
  };

  unsigned rows() const { return static_cast<unsigned>(map.box_rows); }

  Inside inside(unsigned box_row) const {
    int64_t at = int64_t{row} + box_row, first = col < 0 ? 0 : col, end = int64_t{col} + int64_t(map.box_cols);
    if (end > int64_t(map.cols)) end = int64_t(map.cols);
    bool outside = at < 0 || at >= int64_t(map.rows) || entry < 0 || entry >= int64_t(map.entries) || first >= end;
    if (outside) return {nullptr, 0, 0};
    auto element = int64_t(map.element_bytes);
    uint64_t start = map.address + uint64_t(entry) * map.entry_stride_bytes + uint64_t(at) * map.row_stride_bytes;
    return {reinterpret_cast<unsigned char*>(start + uint64_t(first * element)), unsigned((first - col) * element),
            unsigned((end - first) * element)};
  }

  // The matrix's part of the box to shared memory, zeros for the rest.
  void load() const {
    unsigned char bytes[row_capacity];
    for (unsigned i = 0; i < rows(); ++i) {
      Inside part = inside(i);
      memset(bytes, 0, map.row_bytes());
      if (part.bytes != 0) memcpy(bytes + part.first, part.gmem, part.bytes);
      if (map.rounds) round_to_tf32(bytes, map.box_cols);
      for (unsigned at = 0; at < map.row_bytes(); at += chunk) memcpy(place(i, at), bytes + at, chunk);
    }
  }

  // Shared memory to `bytes`, row after row.
  void read(unsigned char* bytes) const {
    for (unsigned i = 0; i < rows(); ++i)
      for (unsigned at = 0; at < map.row_bytes(); at += chunk, bytes += chunk) memcpy(bytes, place(i, at), chunk);
  }

  // What a store writes of a row: hardware clips it to whole chunks, so up to 15 bytes beyond the matrix's width.
  Inside stored(unsigned box_row) const {
    Inside part = inside(box_row);
    part.bytes = (part.bytes + static_cast<unsigned>(chunk) - 1) / chunk * chunk;
    return part;
  }

  // `bytes`, as read, to the matrix: other rows and chunks than its own are left alone.
  void write(const unsigned char* bytes) const {
    for (unsigned i = 0; i < rows(); ++i, bytes += map.row_bytes())
      if (Inside part = stored(i); part.bytes != 0) memcpy(part.gmem, bytes + part.first, part.bytes);
  }

 private:
  static constexpr size_t chunk = EncodedMap::chunk_bytes, row_capacity = EncodedMap::most_box * 8;

  unsigned char* place(unsigned box_row, unsigned at) const {
    return reinterpret_cast<unsigned char*>(swizzled(smem + box_row * map.row_bytes() + at, map.span_bytes));
  }
};
