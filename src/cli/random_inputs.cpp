#include "cli/random_inputs.h"

#include "import/onnx/inputs.h"

namespace aglow::cli {

Tensor randomTensor(const Type& type, Rng& rng) {
  const auto count = static_cast<size_t>(type.elements());
  if (isFloat(type.kind())) {
    std::vector<double> values(count);
    for (double& value : values) value = rng.real(-1, 1);
    return Tensor::fromDoubles(type, values);
  }
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = rng.between(0, 1);
  return Tensor::fromInts(type, values);
}

Diagnosed<ModelValues> randomInputs(const onnx::Graph& graph, const ModelValues& given,
                                    const onnx::ImportOptions& sizes, uint64_t seed) {
  onnx::ImportOptions options{.shapes = {}, .dims = sizes.dims, .given = given, .evaluator = nullptr};
  for (const auto& [name, shape] : sizes.shapes)
    if (!given.contains(name)) options.shapes[name] = shape;
  const onnx::InputTypes inputs = onnx::resolveInputs(graph, options);
  if (!inputs.diagnostics.empty()) return inputs.diagnostics;
  ModelValues values = given;
  Rng rng(seed);
  for (const onnx::ValueInfo& info : graph.inputs)
    if (const auto type = inputs.types.find(info.name); type != inputs.types.end() && !values.contains(info.name))
      values[info.name] = ModelValue::of(randomTensor(type->second, rng));
  return values;
}

}  // namespace aglow::cli
