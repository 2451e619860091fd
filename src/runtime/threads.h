// The threads that networks of one session or program share.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace aglow {

// Starts the threads that the options ask for (0: one per processor). What the machine does not give of what is wanted
// comes back in words: fewer threads, a cache that is not safe. Nothing of it is a fault, but people should know.
std::vector<std::string> startThreads(BackendOptions& options);

}  // namespace aglow
