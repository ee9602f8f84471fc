// The stretches of shared memory that an operand of wgmma covers, for who watches memory.
#pragma once

#include <algorithm>
#include <vector>

#include "range.hpp"
#include "wgmma_product.hpp"

// In ascending order, neighbours joined; offsets count from `smem`.
inline std::vector<Range> ranges_of(const WgmmaOperand& operand, const unsigned char* smem) {
  std::vector<unsigned> offsets;
  for (int line = 0; line < operand.lines(); ++line)
    for (int chunk = 0; chunk < operand.chunks(); ++chunk) offsets.push_back(operand.offset(line, chunk));
  std::sort(offsets.begin(), offsets.end());
  std::vector<Range> ranges;
  for (unsigned offset : offsets) {
    uintptr_t address = reinterpret_cast<uintptr_t>(smem) + offset;
    if (!ranges.empty() && ranges.back().address + ranges.back().bytes == address)
      ranges.back().bytes += WgmmaOperand::chunk_bytes;
    else
      ranges.push_back({address, WgmmaOperand::chunk_bytes});
  }
  return ranges;
}
