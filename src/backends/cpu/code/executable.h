// Machine code in the memory of this process, wherever it came from, and executables of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/code/memory_map.h"
#include "backends/cpu/code/run_time.h"

namespace aglow::codegen {

struct LoadedCode {
  using Entry = int32_t(std::byte* const* bases, const RunTime* runTime);

  std::vector<Entry*> entries;        // by program
  std::shared_ptr<const void> owner;  // keeps the code where it is
};

struct ExecutableParts {
  std::vector<Program> programs;  // their constants lie where they are: in memory, or in a mapped file
  std::vector<MemoryMap> memory;  // of each, as the code was generated for it
  LoadedCode code;
  std::string target;
  std::shared_ptr<ThreadPool> pool;
  bool cached = false;  // code was found, not generated
};

// Calls a function for each number below a count, on at most so many threads of a pool.
void eachSideBySide(ThreadPool& pool, int threads, int64_t count, const std::function<void(int64_t)>& each);

// OutOfMemory where there is no memory for a first run.
Result<std::unique_ptr<Executable>> makeExecutable(ExecutableParts parts, const BackendOptions& options);

}  // namespace aglow::codegen
