#include "runtime/threads.h"

#include <fmt/format.h>

#include "support/machine.h"

namespace aglow {

std::vector<std::string> startThreads(BackendOptions& options) {
  std::vector<std::string> notes;
  if (options.threads == 0) options.threads = machineThreads();
  options.pool = ThreadPool::ofProcess(options.threads);
  if (options.pool->threads() < options.threads)
    notes.push_back(fmt::format("the system gives {} of {} threads", options.pool->threads(), options.threads));
  return notes;
}

}  // namespace aglow
