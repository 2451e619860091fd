#include "support/stop.h"

namespace aglow {

static thread_local const StopScope* innermost = nullptr;

StopScope::StopScope(std::function<bool()> asked) : asked_(std::move(asked)), outer_(innermost) { innermost = this; }

StopScope::~StopScope() { innermost = outer_; }

bool StopScope::present() { return innermost != nullptr && innermost->asked_; }

Status StopScope::check() {
  if (!present() || !innermost->asked_()) return {};
  return Error{.code = Code::Cancelled, .message = "the run was asked to stop"};
}

}  // namespace aglow
