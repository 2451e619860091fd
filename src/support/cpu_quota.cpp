#include "support/cpu_quota.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace aglow {

namespace {

namespace fs = std::filesystem;

constexpr double kNone = std::numeric_limits<double>::infinity();

double quotient(double quota, double period) { return quota > 0 && period > 0 ? quota / period : kNone; }

// Version 2 has both numbers in one file, or the word max.
double quotaIn2(const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period ? quotient(quota, period) : kNone;
}

double quotaIn1(const fs::path& folder) {
  std::ifstream quotaFile(folder / "cpu.cfs_quota_us"), periodFile(folder / "cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quotaFile >> quota && periodFile >> period ? quotient(quota, period) : kNone;
}

// Of a group and all above it. Inside of a container the group's own name may not be there, and its files are those of
// the root.
double leastQuota(const fs::path& root, const std::string& group, double (*quotaIn)(const fs::path&)) {
  double least = quotaIn(root);
  fs::path folder = root;
  for (const fs::path& part : fs::path(group).relative_path()) least = std::min(least, quotaIn(folder /= part));
  return least;
}

bool namesCpu(const std::string& controllers) {
  std::istringstream words(controllers);
  for (std::string word; std::getline(words, word, ',');)
    if (word == "cpu") return true;
  return false;
}

}  // namespace

double cpuQuota(const std::string& groups, const std::string& mounted) {
  double least = kNone;
  std::istringstream lines(groups);
  // Each is number:controllers:group, and version 2 has neither number nor controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, leastQuota(mounted, group, quotaIn2));
    } else if (namesCpu(controllers)) {
      least = std::min(least, leastQuota(fs::path(mounted) / controllers, group, quotaIn1));
      least = std::min(least, leastQuota(fs::path(mounted) / "cpu", group, quotaIn1));
    }
  }
  return least == kNone ? 0 : least;
}

}  // namespace aglow
