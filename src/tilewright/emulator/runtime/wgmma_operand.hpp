// An operand of wgmma as its descriptor says it lies in shared memory. Owns descriptors and the layouts they name:
// where each 16 bytes of the operand are. What is computed from them is wgmma_product.hpp's.
//
// The operand's elements come in lines of 16-byte chunks: along k where it is K-major, one line for each row of A or
// column of B; across k where it is transposed, one line for each k.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tensor_map.hpp"

class WgmmaOperand {
 public:
  static constexpr unsigned chunk_bytes = 16, k_bytes = 32, block_lines = 8;

  // `extent` counts the rows of A or the columns of B.
  WgmmaOperand(uint64_t descriptor, int extent, int element_bytes, bool is_transposed)
      : start_(sixteens(descriptor)),
        leading_(sixteens(descriptor >> 16)),
        stride_(sixteens(descriptor >> 32)),
        span_(span_of(descriptor >> 62)),
        others_(descriptor & ~used_bits),
        element_bytes_(element_bytes),
        is_transposed_(is_transposed),
        lines_(is_transposed ? static_cast<int>(k_bytes) / element_bytes : extent),
        chunks_(is_transposed ? extent * element_bytes / static_cast<int>(chunk_bytes) : 2) {}

  int lines() const { return lines_; }
  int chunks() const { return chunks_; }
  int elements_per_chunk() const { return static_cast<int>(chunk_bytes) / element_bytes_; }
  bool is_transposed() const { return is_transposed_; }
  unsigned start() const { return start_; }
  unsigned span() const { return span_; }

  // Whether all bits are fields the emulator knows, the base offset zero among them.
  bool is_descriptor() const { return others_ == 0; }

  // Whether the swizzle's pattern, which repeats every eight rows of the span, starts with the operand.
  bool starts_with_pattern() const { return span_ == 0 || start_ / span_ % block_lines == 0; }

  // The chunk's offset in dynamic shared memory.
  unsigned offset(int line, int chunk) const {
    auto block = static_cast<unsigned>(line) / block_lines, row = static_cast<unsigned>(line) % block_lines;
    auto at = static_cast<unsigned>(chunk);
    if (span_ == 0) {
      // Blocks of eight chunks: the stride leads to the next block across k, the leading offset to the next along k.
      return is_transposed_ ? start_ + at * stride_ + block * leading_ + row * chunk_bytes
                            : start_ + block * stride_ + at * leading_ + row * chunk_bytes;
    }
    unsigned bytes = at * chunk_bytes, spans = bytes / span_;
    unsigned plain =
        start_ + block * stride_ + row * span_ + (is_transposed_ ? spans * leading_ + bytes % span_ : bytes);
    return static_cast<unsigned>(swizzled(plain, span_));
  }

  // One past the last byte that the operand has.
  size_t end() const {
    size_t end = 0;
    for (int line = 0; line < lines_; ++line)
      for (int chunk = 0; chunk < chunks_; ++chunk)
        if (size_t last = size_t{offset(line, chunk)} + chunk_bytes; last > end) end = last;
    return end;
  }

 private:
  static constexpr uint64_t used_bits = 0xC000'3FFF'3FFF'3FFF;

  static unsigned sixteens(uint64_t field) { return static_cast<unsigned>(field & 0x3FFF) << 4; }
  static unsigned span_of(uint64_t layout) {
    constexpr unsigned spans[] = {0, 128, 64, 32};
    return spans[layout];
  }

  unsigned start_, leading_, stride_, span_;
  uint64_t others_;
  int element_bytes_;
  bool is_transposed_;
  int lines_, chunks_;
};
