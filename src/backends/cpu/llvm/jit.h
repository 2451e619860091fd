// Machine code in the memory of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/code/run_time.h"
#include "support/error.h"

namespace aglow::codegen {

class JitCode {
public:
  using Entry = int32_t(std::byte* const* bases, const RunTime* runTime);

  // An object file for this machine, and the names of its entries. With `named`, profilers that look for
  // /tmp/perf-PID.map, as Linux's perf does, find the functions' names there.
  static Result<JitCode> load(const std::string& object, const std::vector<std::string>& names, bool named = false);
  JitCode(JitCode&&) noexcept;
  ~JitCode();

  Entry* entry(size_t index) const { return entries_[index]; }

private:
  JitCode();
  Status link(const std::string& object, const std::vector<std::string>& names, bool named);

  struct State;
  std::unique_ptr<State> state_;
  std::vector<Entry*> entries_;
};

}  // namespace aglow::codegen
