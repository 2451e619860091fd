#include "support/diagnostics.h"

#include <functional>

namespace aglow {

namespace {

constexpr size_t kKept = 10'000;

}  // namespace

void Diagnostics::add(Error error) {
  if (!seen_.insert(std::hash<std::string>()(error.text())).second) return;
  const ExitCode exit = codeInfo(error.code).exit;
  if (count_ == 0 || exit_ == ExitCode::NotSupported || exit == ExitCode::Internal) exit_ = exit;
  ++count_;
  if (errors_.size() < kKept) errors_.push_back(std::move(error));
}

Diagnostics Diagnostics::at(std::string_view place) && {
  for (Error& error : errors_) error = std::move(error).at(place);
  return std::move(*this);
}

}  // namespace aglow
