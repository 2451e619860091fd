#include "support/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "support/cpu_quota.h"
#include "support/thread_pool.h"

namespace aglow {

int64_t machineMemory() { return int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

int machineThreads() {
  cpu_set_t usable;
  const int count = sched_getaffinity(0, sizeof(usable), &usable) == 0
                        ? CPU_COUNT(&usable)
                        : static_cast<int>(std::thread::hardware_concurrency());
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  const double quota = cpuQuota(groups, "/sys/fs/cgroup");
  const int allowed = quota > 0 && quota < count ? static_cast<int>(std::ceil(quota)) : count;
  return std::clamp(allowed, 1, kMaxThreads);
}

// The counter of getrusage would go on from the process that started this one.
int64_t peakResidentBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word)
    if (int64_t kib = 0; word == "VmHWM:" && status >> kib) return kib * 1024;
  return 0;
}

int64_t privateBytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string word;
  int64_t total = 0;
  while (rollup >> word)
    if (int64_t kib = 0; (word == "Private_Clean:" || word == "Private_Dirty:") && rollup >> kib) total += kib * 1024;
  return total;
}

}  // namespace aglow
