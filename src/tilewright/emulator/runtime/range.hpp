// A stretch of memory that one operation covers.
#pragma once

#include <stdint.h>

struct Range {
  uintptr_t address;
  unsigned bytes;
};
