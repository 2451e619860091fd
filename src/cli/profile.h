// What takes the time, as a table and as a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "memory/timeline.h"
#include "runtime/run_profile.h"
#include "support/machine.h"

namespace aglow::cli {

class Profile final : public RunProfile {
public:
  // Where something travels, what engines were expected to do.
  explicit Profile(const Program& program, std::optional<Timeline> expected = {});

  // Instructions by time, the slowest first; shares are of all instructions together.
  std::string table(const MachinePeak& peak) const;
  nlohmann::json json(const MachinePeak& peak) const;
  // The last run in the trace event format of Chrome and Perfetto.
  std::string trace() const;

private:
  std::optional<Timeline> expected_;
};

}  // namespace aglow::cli
