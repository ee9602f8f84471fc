// A tensor map as a kernel takes it: 128 bytes by value, made on the host for one device. What copies by it is
// tma.cuh's.
#pragma once

#include "tilewright/platform.cuh"

namespace tilewright {

// Opaque on a GPU. In the emulator: address, rows, columns, row stride in bytes, batch entries, entry stride in bytes,
// rows and columns of the box, bytes of an element, bytes of the swizzle's span (0: none), whether elements
// are rounded to TF32.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

}  // namespace tilewright
