// What was built or measured for a device, kept in the code cache between processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "backends/package_cache.h"
#include "support/machine.h"

namespace aglow::device {

class Kept {
public:
  // One file: of the kind that the ending names, of the device with this identity, and of what it was made from. An
  // empty folder: nothing is found or kept.
  Kept(std::string folder, const char* ending, std::string_view identity, std::string_view madeFrom);

  // The bytes as they were kept; none where there are none, or not those: a damaged file goes.
  std::optional<std::string> find() const;
  // Nobody misses what cannot be kept.
  void keep(std::string_view bytes) const;
  void remove() const { cache_.remove(name_); }

  // A peak that was measured.
  std::optional<MachinePeak> peak() const;
  void keep(const MachinePeak& peak) const;

private:
  PackageCache cache_;
  std::string name_;
};

}  // namespace aglow::device
