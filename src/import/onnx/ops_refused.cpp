// Standard operators that this compiler does not take, each with its reason.
#include "import/onnx/op_contrib.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr std::string_view kSearch =
    "it runs a model of its own in a loop; compile that model, and write the loop around it";
constexpr std::string_view kForeign = "it holds a program of another compiler; export the model without it";

constexpr OpRow refused(std::string_view name, std::string_view why, std::string_view domain = {}) {
  return {.name = name, .handler = nullptr, .domain = domain, .refusal = why};
}

}  // namespace

std::span<const OpRow> refusedRows() {
  static constexpr OpRow rows[] = {
      refused("BeamSearch", kSearch, kMicrosoft), refused("GreedySearch", kSearch, kMicrosoft),
      refused("Sampling", kSearch, kMicrosoft),   refused("WhisperBeamSearch", kSearch, kMicrosoft),
      refused("EPContext", kForeign, kMicrosoft), refused("Snpe", kForeign, kMicrosoft),
  };
  return rows;
}

}  // namespace aglow::onnx
