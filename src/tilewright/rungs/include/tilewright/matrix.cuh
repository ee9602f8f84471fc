// 8×8 matrices of 16-bit elements between shared memory and a warp's registers, as tensor cores take them.
// Each function has two bodies, CUDA and emulator.
#pragma once

#include "tilewright/memory.cuh"
#include "tilewright/warp.cuh"

namespace tilewright {

// Loads `count` (1, 2 or 4) matrices, one register of two elements each. Lane 8·i + r points to the 16 bytes, 16-byte
// aligned, that are row r of matrix i; the pointers of other lanes are not used. A lane gets elements 2·(lane % 4) and
// the next of row lane / 4, of the transposed matrix where `transposed`. The whole warp must come.
#if TILEWRIGHT_EMULATED

namespace emulator {

struct MatrixLane {
  const void* row;
  unsigned registers[4];
};

constexpr int matrix_side = 8, matrix_row_bytes = 16;

// Element (row, column) of the matrix whose row pointers start in lane `first`; 0xFFFF where that lane is not there.
inline unsigned matrix_element(void* const* lanes, int first, int row, int column) {
  auto* owner = lane_record<MatrixLane>(lanes, first + row);
  return owner == nullptr ? 0xFFFF : static_cast<const unsigned short*>(owner->row)[column];
}

template <int count, bool transposed>
inline void load_matrices(void* const* lanes) {
  for (int lane = 0; lane < warp_lanes; ++lane) {
    auto* mine = lane_record<MatrixLane>(lanes, lane);
    if (mine == nullptr) continue;
    int row = lane / 4, column = lane % 4 * 2;
    for (int i = 0; i < count; ++i) {
      int first = matrix_side * i;
      unsigned low = transposed ? matrix_element(lanes, first, column, row) : matrix_element(lanes, first, row, column);
      unsigned high =
          transposed ? matrix_element(lanes, first, column + 1, row) : matrix_element(lanes, first, row, column + 1);
      mine->registers[i] = low | high << 16;
    }
  }
}

template <int count>
inline void store_matrices(void* const* lanes) {
  for (int lane = 0; lane < warp_lanes; ++lane) {
    auto* mine = lane_record<MatrixLane>(lanes, lane);
    int row = lane / 4, column = lane % 4 * 2;
    for (int i = 0; mine != nullptr && i < count; ++i) {
      auto put = [&](int r, int c, unsigned bits) {
        auto* owner = lane_record<MatrixLane>(lanes, matrix_side * i + r);
        auto* elements = owner == nullptr ? nullptr : static_cast<unsigned short*>(const_cast<void*>(owner->row));
        if (elements != nullptr) elements[c] = static_cast<unsigned short>(bits);
      };
      put(row, column, mine->registers[i]);
      put(row, column + 1, mine->registers[i] >> 16);
    }
  }
}

// Whether the calling lane points to a row; refuses one that is not aligned.
template <int count>
inline bool points_to_row(const void* row, const char* name, const char* file, int line) {
  static_assert(count == 1 || count == 2 || count == 4, "1, 2 or 4 matrices are moved together");
  int lane = lane_index();
  if (lane >= matrix_side * count) return false;
  auto excess = static_cast<int>(reinterpret_cast<unsigned long>(row) % matrix_row_bytes);
  if (excess != 0) {
    char text[96];
    snprintf(text, sizeof text, "%s: lane %d's row is %d bytes off a multiple of 16", name, lane, excess);
    tilewright_refuse(text, file, line);
  }
  return true;
}

}  // namespace emulator

template <int count, bool transposed = false>
inline void ldmatrix(unsigned (&registers)[count], const void* row, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  if (emulator::points_to_row<count>(row, "ldmatrix", file, line)) tilewright_reads(row, emulator::matrix_row_bytes);
  emulator::MatrixLane mine{row, {}};
  tilewright_warp_meet(emulator::load_matrices<count, transposed>, &mine, FULL_WARP, "ldmatrix", file, line);
  for (int i = 0; i < count; ++i) registers[i] = mine.registers[i];
}

template <int count>
inline void stmatrix(void* row, const unsigned (&registers)[count], const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
  if (emulator::points_to_row<count>(row, "stmatrix", file, line)) tilewright_writes(row, emulator::matrix_row_bytes);
  emulator::MatrixLane mine{row, {}};
  for (int i = 0; i < count; ++i) mine.registers[i] = registers[i];
  tilewright_warp_meet(emulator::store_matrices<count>, &mine, FULL_WARP, "stmatrix", file, line);
}

#else

template <int count, bool transposed = false>
__device__ __forceinline__ void ldmatrix(unsigned (&registers)[count], const void* row) {
  static_assert(count == 1 || count == 2 || count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  const unsigned address = smem_address(row);
  if constexpr (count == 1 && !transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(registers[0]) : "r"(address) : "memory");
  } else if constexpr (count == 1) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(registers[0])
                 : "r"(address)
                 : "memory");
  } else if constexpr (count == 2 && !transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (count == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(registers[0]), "=r"(registers[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (!transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
                 : "r"(address)
                 : "memory");
  }
}

#if __CUDA_ARCH__ >= 900

// The way back, not transposed: each lane's registers to the rows that the lanes point to.
template <int count>
__device__ __forceinline__ void stmatrix(void* row, const unsigned (&registers)[count]) {
  static_assert(count == 1 || count == 2 || count == 4, "1, 2 or 4 matrices are moved together");
  const unsigned address = smem_address(row);
  if constexpr (count == 1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" : : "r"(address), "r"(registers[0]) : "memory");
  } else if constexpr (count == 2) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :
                 : "r"(address), "r"(registers[0]), "r"(registers[1])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :
                 : "r"(address), "r"(registers[0]), "r"(registers[1]), "r"(registers[2]), "r"(registers[3])
                 : "memory");
  }
}

#endif

#endif

}  // namespace tilewright
