#include "support/machine.h"

#include <unistd.h>

namespace aglow {

int64_t machineMemory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

}  // namespace aglow
