// Machine code in the memory of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backends/cpu/code/run_time.h"
#include "support/error.h"

namespace aglow::codegen {

class JitCode {
public:
  using Entry = int32_t(std::byte* const* bases, const RunTime* runTime);

  // An object file for this machine, whose function `name` is the entry. With `named`, profilers that look for
  // /tmp/perf-PID.map, as Linux's perf does, find the functions' names there.
  static Result<JitCode> load(const std::string& object, const std::string& name, bool named = false);
  JitCode(JitCode&&) noexcept;
  ~JitCode();

  Entry* entry() const { return entry_; }

private:
  JitCode();
  Status link(const std::string& object, const std::string& name, bool named);

  struct State;
  std::unique_ptr<State> state_;
  Entry* entry_ = nullptr;
};

}  // namespace aglow::codegen
