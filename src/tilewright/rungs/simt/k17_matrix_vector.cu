// k17_matrix_vector: a row or a column of D, the product of a matrix and a vector, at the rate of reading the matrix.
// builds on:      k15_split_k
// what changes:   the matrix goes from global memory straight to FMAs, along its stored rows whichever way they run;
//                 all of a step's loads at once; no shared memory and no barrier before the sums are added
// should help:    one row or one column of D, where each element of the matrix serves a single FMA
// costs:          with more rows and columns the matrix is read once for each of the fewer
// preconditions:  none: any size, layout, leading dimension and alignment
#include "tilewright/dependent.cuh"
#include "tilewright/epilogue.cuh"
#include "tilewright/slices.cuh"

using Acc = Scalar::accumulate;
using Element = Scalar::storage;

constexpr int WARPS = NUM_THREADS / 32;

// Where the matrix's rows run along k, a row is an output's: a warp has WARP_OUTPUTS, and its lanes share out k.
constexpr int WARP_OUTPUTS = BN / WARPS;

// Where they run across k, a row is a k's: a warp has WARP_K. ROW_LANES lanes read one, LANE_ROWS of them together.
constexpr int WARP_K = BK / WARPS;
constexpr int ROW_LANES = BN / WORD < 32 ? BN / WORD : 32, LANE_ROWS = 32 / ROW_LANES, LANE_K = WARP_K / LANE_ROWS;

constexpr int WORDS = ALONG_K ? BK / (32 * WORD) : BN / (ROW_LANES * WORD);  // of a lane, of each row
constexpr int LANE_OUTPUTS = ALONG_K ? WARP_OUTPUTS : WORDS * WORD;          // whose sums a lane has
constexpr int PARTS = ALONG_K ? 32 : WARPS * LANE_ROWS;                      // sums of one output

struct Partial {
  alignas(16) Acc sums[MOST_PARTS][BN + 4];  // four more elements, for the banks' sake
};

// Which outputs, of which row or column of D, from which slice of k.
struct Part {
  int first, line, entry, slice, index;

  __device__ __forceinline__ explicit Part(const GemmArgs& args) {
    const int bands = ceil_div(IS_ROW ? args.n : args.m, BN), lines = IS_ROW ? args.m : args.n;
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

// The vector from some k on: `there` elements are left of it, `stride` apart.
struct Vector {
  const Element* from;
  long long stride;
  int there;

  __device__ __forceinline__ Acc operator[](int k) const {
    return !GUARDED || k < there ? Scalar::load(from + k * stride) : Scalar::zero();
  }
};

// A step of rows that run along k: each output of the warp's is a row, and its lanes take parts of it.
__device__ __forceinline__ void along_k(Acc (&sums)[LANE_OUTPUTS], const Vector& vector, const Element* matrix,
                                        long long ld, int outputs) {
  const int lane = threadIdx.x % 32;
  Acc some[WORDS][WARP_OUTPUTS][WORD], factor[WORDS][WORD];  // all on their way before the first is used
#pragma unroll
  for (int word = 0; word < WORDS; ++word) {
    const int k = (word * 32 + lane) * WORD;
#pragma unroll
    for (int i = 0; i < WARP_OUTPUTS; ++i) load(some[word][i], matrix + i * ld + k, i < outputs ? vector.there - k : 0);
#pragma unroll
    for (int x = 0; x < WORD; ++x) factor[word][x] = vector[k + x];
  }
#pragma unroll
  for (int word = 0; word < WORDS; ++word) {
#pragma unroll
    for (int i = 0; i < WARP_OUTPUTS; ++i) {
#pragma unroll
      for (int x = 0; x < WORD; ++x) sums[i] = Scalar::fma(some[word][i][x], factor[word][x], sums[i]);
    }
  }
}

// The lane's first output in word `word` of a row that runs across k.
__device__ __forceinline__ int output_of(int word, int lane) { return (word * ROW_LANES + lane % ROW_LANES) * WORD; }

// A step of rows that run across k: each k of the warp's is a row, and its lanes have different outputs.
__device__ __forceinline__ void across_k(Acc (&sums)[LANE_OUTPUTS], const Vector& vector, const Element* matrix,
                                         long long ld, int outputs) {
  const int lane = threadIdx.x % 32;
  Acc some[LANE_K][WORDS][WORD], factor[LANE_K];  // all on their way before the first is used
#pragma unroll
  for (int i = 0; i < LANE_K; ++i) {
    const int k = i * LANE_ROWS + lane / ROW_LANES;
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
      const int output = output_of(word, lane);
      load(some[i][word], matrix + k * ld + output, k < vector.there ? outputs - output : 0);
    }
    factor[i] = vector[k];
  }
#pragma unroll
  for (int i = 0; i < LANE_K; ++i) {
#pragma unroll
    for (int word = 0; word < WORDS; ++word) {
#pragma unroll
      for (int x = 0; x < WORD; ++x) {
        sums[word * WORD + x] = Scalar::fma(some[i][word][x], factor[i], sums[word * WORD + x]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(NUM_THREADS, MIN_CTAS)
    k17_matrix_vector(const __grid_constant__ GemmArgs args) {
  __shared__ Partial partial;
  __shared__ unsigned arrived;
  const Part part(args);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  const Element* a = args.a + part.entry * args.batch_stride_a;
  const Element* b = args.b + part.entry * args.batch_stride_b;
  const int outputs = (IS_ROW ? args.n : args.m) - part.first;  // that are left of D
  const long long ld = IS_ROW ? args.ldb : args.lda;
  const Element* matrix = (IS_ROW ? b : a) + part.first * (ALONG_K ? ld : 1);
  const bool is_contiguous = IS_ROW ? !TRANSPOSED_A : TRANSPOSED_B;  // the vector
  const long long vector_ld = IS_ROW ? args.lda : args.ldb, stride = is_contiguous ? 1 : vector_ld;
  const Element* vector = (IS_ROW ? a : b) + part.line * (is_contiguous ? vector_ld : 1);

  const SliceSteps<SPLIT_K> steps(args, part.slice);
  const int first_output = ALONG_K ? warp * WARP_OUTPUTS : 0, first_k = ALONG_K ? 0 : warp * WARP_K;
  Acc sums[LANE_OUTPUTS] = {};
  wait_for_previous_kernel();
  for (int at = steps.first; at < steps.first + steps.count; ++at) {
    const int k = at * BK + first_k;
    const Vector rest{vector + k * stride, stride, args.k - k};
    if (ALONG_K) {
      along_k(sums, rest, matrix + first_output * ld + k, ld, outputs - first_output);
    } else {
      across_k(sums, rest, matrix + k * ld, ld, outputs);
    }
  }
  let_next_kernel_start();

#pragma unroll
  for (int i = 0; i < LANE_OUTPUTS; ++i) {
    if (ALONG_K) {
      partial.sums[lane][first_output + i] = sums[i];
    } else {
      partial.sums[warp * LANE_ROWS + lane / ROW_LANES][output_of(i / WORD, lane) + i % WORD] = sums[i];
    }
  }
  __syncthreads();  // all sums are there before they are added

  Acc totals[4] = {};
  if (threadIdx.x < BN / 4) {
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      const Vec4<Acc> four = load4(&partial.sums[part][threadIdx.x * 4]);
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
