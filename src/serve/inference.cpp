#include "serve/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace aglow::serve {

namespace {

// Numbers of gRPC's states, which this folder alone would otherwise include gRPC for.
enum Grpc : int {
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

}  // namespace

int hostPriority(uint64_t priority) {
  if (priority == 0) return 0;
  constexpr uint64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(kMost - std::min(priority, kMost - 1));
}

Error badRequest(std::string message, std::string hint) {
  return {.code = Code::BadBinding, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Error tooLarge(std::string message) { return {.code = Code::LimitReached, .message = std::move(message)}; }

FaultStatus statusOf(Code code) {
  switch (code) {
    case Code::UnknownNetwork:
      return {404, kNotFound};
    case Code::LimitReached:
      return {413, kResourceExhausted};
    case Code::Busy:
    case Code::OutOfMemory:
      return {503, kResourceExhausted};
    case Code::Device:
      return {503, kUnavailable};
    case Code::DeadlinePassed:
      return {504, kDeadlineExceeded};
    case Code::Cancelled:
      return {503, kCancelled};
    default:
      break;
  }
  switch (codeInfo(code).exit) {
    case ExitCode::Usage:
    case ExitCode::BadModel:
      return {400, kInvalidArgument};
    case ExitCode::NotSupported:
      return {400, kUnimplemented};
    case ExitCode::OutOfResources:
      return {503, kResourceExhausted};
    case ExitCode::File:
      return {500, kFailedPrecondition};
    default:
      return {500, kInternal};
  }
}

std::string faultText(const Error& error) {
  std::string text = fmt::format("[{}] ", codeInfo(error.code).id);
  if (!error.where.empty()) text += error.where + ": ";
  text += error.message;
  if (!error.hint.empty()) text += fmt::format(" ({})", error.hint);
  return text;
}

Error firstOf(const Diagnostics& diagnostics) {
  Error error = diagnostics.errors().front();
  if (diagnostics.count() > 1) error.message += fmt::format(" (and {} more faults)", diagnostics.count() - 1);
  return error;
}

}  // namespace aglow::serve
