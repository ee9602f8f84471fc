// How many tiles or steps a size takes, for every size that an int holds.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

// `size` over `tile`, rounded up; 0 for 0. The usual sum, size + tile - 1, may not fit an int.
__device__ __forceinline__ int ceil_div(int size, int tile) { return size / tile + (size % tile != 0); }

}  // namespace tilewright
