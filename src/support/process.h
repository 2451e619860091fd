// Other programs, run to their end.
#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace aglow {

// Runs a program, found as a shell would find it; what it says goes to the file "log" in a folder that is also where
// its temporary files go, and there is nothing for it to read. Its exit code, kNoProgram where there is no such
// program, -1 where a signal ended it; OutOfMemory where the system has no process for it.
inline constexpr int kNoProgram = 127;
Result<int> runProgram(const std::vector<std::string>& words, const std::string& folder);

// The bytes of a file; none where it cannot be read.
std::string readAll(const std::string& path);

}  // namespace aglow
