#include "import/onnx/importer.h"

#include <fmt/format.h>

#include "import/onnx/graph_import.h"

namespace aglow::onnx {

namespace {

// The inputs that decide shapes, as a sentence.
Error dynamicShape(const NeedsValue& needs) {
  std::string names;
  for (const std::string& name : needs.inputs) names += (names.empty() ? "'" : ", '") + name + "'";
  return {.code = Code::DynamicShape,
          .message = "a shape depends on the value of input " + names + ", which is known only at run time",
          .where = {},
          .hint = std::string(kDynamicHint)};
}

}  // namespace

Diagnosed<ImportedModel> importModel(const Model& model, const ImportOptions& options) {
  AGLOW_CHECK(options.evaluator != nullptr, "import needs an evaluator");
  // Each round freezes the inputs that the last one asked for. There are finitely many, so this ends.
  std::set<std::string> frozen;
  while (true) {
    try {
      return GraphImport(model, *options.evaluator).importWhole(options, frozen);
    } catch (const BuildFailure& failure) {
      return failure.error();  // a limit: nothing else of the model matters
    } catch (const NeedsValue& needs) {
      const size_t before = frozen.size();
      for (const std::string& name : needs.inputs) {
        if (!options.given.contains(name) || options.given.at(name).tensors.empty()) return dynamicShape(needs);
        frozen.insert(name);
      }
      AGLOW_CHECK(frozen.size() > before, "a frozen input is asked for again");
    }
  }
}

}  // namespace aglow::onnx
