#include "support/diagnostics.h"

#include <algorithm>

namespace aglow {

ExitCode Diagnostics::exitCode() const {
  if (errors_.empty()) return ExitCode::Ok;
  ExitCode worst = codeInfo(errors_.front().code).exit;
  for (const Error& error : errors_) {
    const ExitCode exit = codeInfo(error.code).exit;
    if (worst == ExitCode::NotSupported || exit == ExitCode::Internal) worst = exit;
  }
  return worst;
}

Diagnostics Diagnostics::at(std::string_view place) && {
  for (Error& error : errors_) error = std::move(error).at(place);
  return std::move(*this);
}

}  // namespace aglow
