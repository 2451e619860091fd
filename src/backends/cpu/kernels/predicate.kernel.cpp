// Whether an instruction under a predicate has anything to do.
#include "backends/cpu/kernels/abi.h"

extern "C" bool aglow_any_true(const uint8_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] != 0) return true;
  return false;
}
