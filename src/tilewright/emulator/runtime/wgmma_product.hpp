// What one wgmma computes: operands widened out of shared memory, and their product added to the accumulators. Owns the
// arithmetic and its buffers. The products of one instruction are added in double precision and rounded once with the
// accumulator: nearer to the truth than a GPU, and equal on integers.
#pragma once

#include "half_bits.hpp"
#include "wgmma_operand.hpp"

enum class WgmmaElement { bfloat16, float16, tfloat32 };

inline int element_bytes(WgmmaElement element) { return element == WgmmaElement::tfloat32 ? 4 : 2; }

class WgmmaProduct {
 public:
  static constexpr int rows = 64, most_cols = 256, most_k = 16, threads = 128;

  // The accumulators of a warpgroup's threads, as rows of a matrix.
  void gather(float* const (&d)[threads], int cols) {
    for_each_pair(cols,
                  [&](int thread, int i, int row, int col) { memcpy(&sums_[row][col], d[thread] + i, pair_bytes); });
  }
  void scatter(float* const (&d)[threads], int cols) const {
    for_each_pair(cols,
                  [&](int thread, int i, int row, int col) { memcpy(d[thread] + i, &sums_[row][col], pair_bytes); });
  }

  // The gathered sums += A · B, or = A · B.
  void multiply(const unsigned char* smem, const WgmmaOperand& a, const WgmmaOperand& b, WgmmaElement element, int cols,
                bool accumulates) {
    k_ = static_cast<int>(WgmmaOperand::k_bytes) / element_bytes(element);
    widen(smem, a, element, &a_[0][0], most_k, 1);
    widen(smem, b, element, &b_[0][0], 1, most_cols);
    for (int row = 0; row < rows; row += block_rows)
      for (int col = 0; col < cols; col += block_cols) multiply_block(row, col, accumulates);
  }

 private:
  static constexpr size_t pair_bytes = 2 * sizeof(float);
  static constexpr int block_rows = 4, block_cols = 8, lanes = 4;
  using Doubles = double __attribute__((vector_size(lanes * sizeof(double))));
  using Floats = float __attribute__((vector_size(lanes * sizeof(float))));

  // Two neighbouring accumulators of a thread are two neighbouring columns of a row.
  template <typename Visit>
  static void for_each_pair(int cols, Visit visit) {
    for (int thread = 0; thread < threads; ++thread) {
      int row = thread / 32 * 16 + thread % 32 / 4, col = thread % 4 * 2;
      for (int j = 0; j < cols / 8; ++j) {
        visit(thread, 4 * j, row, 8 * j + col);
        visit(thread, 4 * j + 2, row + 8, 8 * j + col);
      }
    }
  }

  // The operand as doubles: `across` apart from one row of A or column of B to the next, `along` along k.
  static void widen(const unsigned char* smem, const WgmmaOperand& operand, WgmmaElement element, double* to,
                    int across, int along) {
    int by_line = operand.is_transposed() ? along : across, by_element = operand.is_transposed() ? across : along;
    int elements = operand.elements_per_chunk();
    for (int line = 0; line < operand.lines(); ++line)
      for (int chunk = 0; chunk < operand.chunks(); ++chunk) {
        const unsigned char* from = smem + operand.offset(line, chunk);
        widen_chunk(from, element, to + line * by_line + chunk * elements * by_element, by_element);
      }
  }

  static void widen_chunk(const unsigned char* from, WgmmaElement element, double* to, int step) {
    uint32_t words[4];
    memcpy(words, from, sizeof words);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      uint32_t low = words[i] & 0xFFFF, high = words[i] >> 16;
      switch (element) {
        case WgmmaElement::bfloat16:
          to[2 * i * step] = float_of_bits(low << 16);
          to[(2 * i + 1) * step] = float_of_bits(high << 16);
          break;
        case WgmmaElement::float16:
          to[2 * i * step] = widen_half(static_cast<uint16_t>(low));
          to[(2 * i + 1) * step] = widen_half(static_cast<uint16_t>(high));
          break;
        case WgmmaElement::tfloat32:
          to[i * step] = float_of_bits(words[i] & ~0x1FFFu);
      }
    }
  }

  void multiply_block(int row, int col, bool accumulates) {
    Doubles left[block_rows] = {}, right[block_rows] = {};
    for (int k = 0; k < k_; ++k) {
      Doubles b_left, b_right;
      memcpy(&b_left, &b_[k][col], sizeof b_left);
      memcpy(&b_right, &b_[k][col + lanes], sizeof b_right);
#pragma GCC unroll 4
      for (int i = 0; i < block_rows; ++i) {
        double a = a_[row + i][k];
        left[i] += a * b_left;
        right[i] += a * b_right;
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < block_rows; ++i) {
      add(&sums_[row + i][col], left[i], accumulates);
      add(&sums_[row + i][col + lanes], right[i], accumulates);
    }
  }

  static void add(float* sums, Doubles products, bool accumulates) {
    Floats result;
    if (accumulates) {
      memcpy(&result, sums, sizeof result);
      products += __builtin_convertvector(result, Doubles);
    }
    result = __builtin_convertvector(products, Floats);
    memcpy(sums, &result, sizeof result);
  }

  int k_ = 0;
  double a_[rows][most_k], b_[most_k][most_cols];
  float sums_[rows][most_cols];
};
