// A request and its answer, as every protocol has them; and what is wrong with one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/parts.h"

namespace aglow::serve {

struct WantedOutput {
  std::string name;
  bool binary = false;  // over HTTP: its bytes behind the JSON
};

struct InferRequest {
  std::string model, version, id;
  Values inputs;
  std::vector<WantedOutput> outputs;  // none: all
  bool binary = false;                // of outputs that are not named
  int priority = 0;                   // more goes first
  std::optional<std::chrono::microseconds> timeout;
};

struct NamedOutput {
  std::string name;
  ModelValue value;
  bool binary = false;
};

struct InferAnswer {
  std::string model, version, id;
  std::vector<NamedOutput> outputs;
};

// Of the protocol's parameter `priority`: 1 goes before 2, and these before requests without one.
int hostPriority(uint64_t priority);

Error badRequest(std::string message, std::string hint = {});
Error tooLarge(std::string message);

// How a fault looks over HTTP, and over gRPC by its number there.
struct FaultStatus {
  int http;
  int grpc;
};
FaultStatus statusOf(Code code);
// "[E105] there is no network 'x'", with the place, and with the hint behind it: one line.
std::string faultText(const Error& error);
// The first of several, with their number.
Error firstOf(const Diagnostics& diagnostics);

}  // namespace aglow::serve
