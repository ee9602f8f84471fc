// k17_matrix_vector: a row or a column of D, the product of a matrix and a vector, at the rate of reading the matrix.
// builds on:      k15_split_k
// what changes:   the matrix goes from global memory straight to FMAs, along its stored rows whichever way they run;
//                 all of a step's loads at once; the vector alone is in shared memory
// should help:    one row or one column of D, where each element of the matrix serves a single FMA
// costs:          with more rows and columns the matrix is read once for each of the fewer
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/epilogue.cuh"
#include "tilewright/slices.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

constexpr int WARPS = NUM_THREADS / 32;
constexpr int WARP_OUTPUTS = BN / WARPS;     // of a step, where the matrix's rows run along k
constexpr int WARP_K = BK / WARPS;           // of a step, where they run across
constexpr int PARTS = ALONG_K ? 32 : WARPS;  // sums of one output, by lanes or by warps

struct Shared {
  Acc vector[BK];
  alignas(16) Acc partial[32][BN + 4];  // of each lane or each warp; four more elements, for the banks' sake
};

// Which outputs, of which row or column of D, from which slice of k.
struct Part {
  int first, line, entry, slice, index;

  __device__ __forceinline__ explicit Part(const GemmArgs& args) {
    const int bands = ((IS_ROW ? args.n : args.m) - 1) / BN + 1, lines = IS_ROW ? args.m : args.n;
    slice = blockIdx.x % SPLIT_K;
    index = blockIdx.x / SPLIT_K;
    first = index % bands * BN;
    line = index / bands % lines;
    entry = index / bands / lines;
  }
};

// WORD elements from `from`, of which the first `there` are the matrix's; the others are zeros.
__device__ __forceinline__ void load(Acc (&to)[WORD], const Element* from, int there) {
  if (!GUARDED || there >= WORD) {
    const auto word = load_word<WORD>(from);
#pragma unroll
    for (int x = 0; x < WORD; ++x) to[x] = Scalar::widen(word[x]);
  } else {
#pragma unroll
    for (int x = 0; x < WORD; ++x) to[x] = x < there ? Scalar::load(from + x) : Scalar::zero();
  }
}

// Element x of lane's words number `word`, among 32 lanes' words side by side.
__device__ __forceinline__ int position(int word, int lane, int x) { return (word * 32 + lane) * WORD + x; }

// A step of rows that run along k: each output of the warp's is a row, and its lanes take parts of it.
template <int COUNT>
__device__ __forceinline__ void along_k(Acc (&sums)[COUNT], const Acc* vector, const Element* matrix, long long ld,
                                        int outputs, int depth) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int word = 0; word < BK / (32 * WORD); ++word) {
    const int k = position(word, lane, 0);
    Acc some[COUNT][WORD];  // all on their way before the first is used
#pragma unroll
    for (int i = 0; i < COUNT; ++i) load(some[i], matrix + i * ld + k, i < outputs ? depth - k : 0);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
      for (int x = 0; x < WORD; ++x) sums[i] = Scalar::fma(some[i][x], vector[k + x], sums[i]);
    }
  }
}

// A step of rows that run across k: each k of the warp's is a row, and its lanes have different outputs.
template <int COUNT>
__device__ __forceinline__ void across_k(Acc (&sums)[COUNT], const Acc* vector, const Element* matrix, long long ld,
                                         int outputs, int depth) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int word = 0; word < COUNT / WORD; ++word) {
    const int output = position(word, lane, 0);
    Acc some[WARP_K][WORD];  // all on their way before the first is used
#pragma unroll
    for (int i = 0; i < WARP_K; ++i) load(some[i], matrix + i * ld + output, i < depth ? outputs - output : 0);
#pragma unroll
    for (int i = 0; i < WARP_K; ++i) {
#pragma unroll
      for (int x = 0; x < WORD; ++x) {
        sums[word * WORD + x] = Scalar::fma(some[i][x], vector[i], sums[word * WORD + x]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS)
    k17_matrix_vector(const __grid_constant__ GemmArgs args) {
  __shared__ Shared shared;
  __shared__ unsigned arrived;
  const Part part(args);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const Element* a = args.a + part.entry * args.batch_stride_a;
  const Element* b = args.b + part.entry * args.batch_stride_b;
  const int outputs = (IS_ROW ? args.n : args.m) - part.first;  // that are left of D
  const long long ld = IS_ROW ? args.ldb : args.lda;
  const Element* matrix = (IS_ROW ? b : a) + part.first * (ALONG_K ? ld : 1);
  const bool is_contiguous = IS_ROW ? !TRANSPOSED_A : TRANSPOSED_B;  // the vector
  const long long vector_ld = IS_ROW ? args.lda : args.ldb, step = is_contiguous ? 1 : vector_ld;
  const Element* vector = (IS_ROW ? a : b) + part.line * (is_contiguous ? vector_ld : 1);

  const SliceSteps<SPLIT_K> steps(args, part.slice);
  Acc sums[ALONG_K ? WARP_OUTPUTS : BN / 32] = {};
  for (int at = steps.first; at < steps.first + steps.count; ++at) {
    const int k0 = at * BK, depth = args.k - k0;
#pragma unroll
    for (int first = 0; first < BK; first += NUM_THREADS) {
      const int k = first + threadIdx.x;
      if (BK < NUM_THREADS && k >= BK) break;
      const bool inside = !GUARDED || k < depth;
      shared.vector[k] = inside ? Scalar::load(vector + (k0 + k) * step) : Scalar::zero();
    }
    __syncthreads();  // the step's part of the vector is there before anyone reads it
    if (ALONG_K) {
      const int mine = warp * WARP_OUTPUTS;
      along_k(sums, shared.vector, matrix + mine * ld + k0, ld, outputs - mine, depth);
    } else {
      const int mine = warp * WARP_K;
      across_k(sums, shared.vector + mine, matrix + (k0 + mine) * ld, ld, outputs, depth - mine);
    }
    __syncthreads();  // everyone has read it before the next part overwrites it
  }

  if (ALONG_K) {
#pragma unroll
    for (int i = 0; i < WARP_OUTPUTS; ++i) shared.partial[lane][warp * WARP_OUTPUTS + i] = sums[i];
  } else {
#pragma unroll
    for (int i = 0; i < BN / 32; ++i) shared.partial[warp][position(i / WORD, lane, i % WORD)] = sums[i];
  }
  __syncthreads();  // all sums are there before they are added

  Acc totals[4] = {};
  if (threadIdx.x < BN / 4) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const Vec4<Acc> four = load4(&shared.partial[part][threadIdx.x * 4]);
#pragma unroll
      for (int x = 0; x < 4; ++x) totals[x] = Scalar::add(totals[x], four[x]);
    }
  }
  if (!add_slices<SPLIT_K, SLICE_GROUP, BN / 4, 4>(args, part.index, part.slice, totals, arrived)) return;

  GemmArgs entry = args;
  entry.c += part.entry * args.batch_stride_c;
  entry.d += part.entry * args.batch_stride_d;
#pragma unroll
  for (int x = 0; x < 4; ++x) {
    const int output = threadIdx.x * 4 + x;
    if (threadIdx.x >= BN / 4 || (GUARDED && output >= outputs)) break;
    const int row = IS_ROW ? part.line : part.first + output, col = IS_ROW ? part.first + output : part.line;
    write_result<BETA_MODE>(entry, row, col, totals[x]);
  }
}
