// One text, two machines: CUDA (NVRTC or nvcc) as it is, or a host compiler with the emulator's spellings.
// Every kernel and header includes this first. TILEWRIGHT_EMULATED is 1 on the host and 0 on CUDA.
#pragma once

#ifdef __CUDACC__
#define TILEWRIGHT_EMULATED 0
#else
#define TILEWRIGHT_EMULATED 1
#include "device.hpp"
#endif
