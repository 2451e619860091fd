// Standard operators that this compiler does not take, each with its reason.
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr std::string_view kRandom = "it draws random numbers, and the same program gives the same result every time";
constexpr std::string_view kMaps = "maps have no tensors here; take the model's output before this operator";

constexpr OpRow refused(std::string_view name, std::string_view why, std::string_view domain = {}) {
  return {.name = name, .handler = nullptr, .domain = domain, .refusal = why};
}

constexpr std::string_view kMl = "ai.onnx.ml";

}  // namespace

std::span<const OpRow> refusedRows() {
  static constexpr OpRow rows[] = {
      refused("Bernoulli", kRandom),
      refused("Multinomial", kRandom),
      refused("RandomNormal", kRandom),
      refused("RandomNormalLike", kRandom),
      refused("RandomUniform", kRandom),
      refused("RandomUniformLike", kRandom),
      refused("ImageDecoder",
              "decoding image files is no computation on tensors; do this step before the model is run"),
      refused("Gradient", "export the model with its gradient written out as operators", "ai.onnx.preview.training"),
      refused("CastMap", kMaps, kMl),
      refused("DictVectorizer", kMaps, kMl),
      refused("ZipMap", kMaps, kMl),
  };
  return rows;
}

}  // namespace aglow::onnx
