#include "import/onnx/importer.h"

#include "import/onnx/external_data.h"
#include "import/onnx/graph_import.h"

namespace aglow::onnx {

Diagnosed<ImportedModel> importModel(const Model& model, const ImportOptions& options) {
  if (options.followLinks && model.external) model.external->followLinks();
  AGLOW_CHECK(options.evaluator != nullptr, "import needs an evaluator");
  // Each round freezes the inputs that the last one asked for. There are finitely many, so this ends.
  std::set<std::string> frozen;
  while (true) {
    try {
      return GraphImport(model, *options.evaluator, options.tolerance).importWhole(options, frozen);
    } catch (const BuildFailure& failure) {
      return failure.error();  // a limit: nothing else of the model matters
    } catch (const NeedsValue& needs) {
      // Only inputs that are given are asked for; without them the node has failed with E303.
      const size_t before = frozen.size();
      frozen.insert(needs.inputs.begin(), needs.inputs.end());
      AGLOW_CHECK(frozen.size() > before, "a frozen input is asked for again");
    }
  }
}

}  // namespace aglow::onnx
