// Values that are computed again where they are needed late, instead of being kept: memory for time.
#pragma once

#include <cstdint>

#include "graph/module.h"

namespace aglow {

// Until no more than `target` bytes are alive at once in the function's order of nodes, or nothing helps: of what is
// kept while most is alive, the value that frees most bytes for the time it costs is computed again before its next
// use. Results stay the same to the bit. Gives the bytes that are alive at most then: an estimate, without what memory
// passes save.
int64_t recompute(Function& function, int64_t target);

}  // namespace aglow
