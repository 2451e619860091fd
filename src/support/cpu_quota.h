// How much processor time the groups that a process is in allow it, on Linux.
#pragma once

#include <string>

namespace aglow {

// Processors' worth of time, the least of all groups up to the root, of either version of control groups; 0: as much as
// there is. `groups` is the text of /proc/self/cgroup, `mounted` where their files are.
double cpuQuota(const std::string& groups, const std::string& mounted);

}  // namespace aglow
