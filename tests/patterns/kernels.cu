// One warp makes one access, where a table says: a byte offset for each lane, negative for an idle lane.
// Beside it, every launch reads the table (128 bytes, one load), and one that loads stores what it got, lane by lane.
// `Word` stands before this text: what a lane moves, 4, 8 or 16 bytes; for ldmatrix, the registers it gets.
#include "tilewright/matrix.cuh"

struct PatternArgs {
  const int* offsets;
  unsigned char* data;
  Word* out;
};

extern "C" __global__ void shared_load(const __grid_constant__ PatternArgs args) {
  const int at = args.offsets[threadIdx.x];
  if (at < 0) return;
  args.out[threadIdx.x] = *reinterpret_cast<const Word*>(tilewright::dynamic_smem() + at);
}

extern "C" __global__ void shared_store(const __grid_constant__ PatternArgs args) {
  const int at = args.offsets[threadIdx.x];
  if (at < 0) return;
  *reinterpret_cast<Word*>(tilewright::dynamic_smem() + at) = Word{};
}

extern "C" __global__ void global_load(const __grid_constant__ PatternArgs args) {
  const int at = args.offsets[threadIdx.x];
  if (at < 0) return;
  args.out[threadIdx.x] = *reinterpret_cast<const Word*>(args.data + at);
}

extern "C" __global__ void global_store(const __grid_constant__ PatternArgs args) {
  const int at = args.offsets[threadIdx.x];
  if (at < 0) return;
  *reinterpret_cast<Word*>(args.data + at) = Word{};
}

template <bool transposed>
__device__ __forceinline__ void load_matrices(const PatternArgs& args) {
  constexpr int count = sizeof(Word) / sizeof(unsigned);
  unsigned registers[count], combined = 0;
  tilewright::ldmatrix<count, transposed>(registers, tilewright::dynamic_smem() + args.offsets[threadIdx.x]);
  for (int i = 0; i < count; ++i) combined ^= registers[i];
  reinterpret_cast<unsigned*>(args.out)[threadIdx.x] = combined;
}

extern "C" __global__ void matrix_load(const __grid_constant__ PatternArgs args) { load_matrices<false>(args); }

extern "C" __global__ void matrix_load_transposed(const __grid_constant__ PatternArgs args) {
  load_matrices<true>(args);
}
