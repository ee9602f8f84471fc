// What TMA is told of a matrix: opaque to the kernel, encoded by the host (`run/tensor_map.py`), passed by value.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

struct alignas(64) TensorMap {
  unsigned long long words[16];
};

}  // namespace tilewright
