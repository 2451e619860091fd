// Facts about the machine the compiler runs on.
#pragma once

#include <cstdint>

namespace aglow {

// Bytes of main memory.
int64_t machineMemory();

}  // namespace aglow
