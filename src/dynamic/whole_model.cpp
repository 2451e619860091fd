#include "dynamic/whole_model.h"

#include "compile/evaluate.h"
#include "compile/text_files.h"
#include "import/model_file.h"

namespace aglow {

Diagnosed<Compilation> compileModel(const onnx::Model& model, const CompileOptions& options,
                                    const onnx::ImportOptions& import) {
  ReferenceEvaluator evaluator;
  onnx::ImportOptions folding = import;
  folding.evaluator = &evaluator;
  auto imported = onnx::importModel(model, folding);
  if (!imported.ok()) return imported.diagnostics();
  return compileModule(std::move(imported->module), {std::move(imported->interface)}, options);
}

Diagnosed<Compilation> compileFile(const std::string& path, const CompileOptions& options,
                                   const onnx::ImportOptions& import) {
  if (isWhole(path)) return compileTextFile(path, options);
  auto model = readModelFile(path);
  if (!model.ok()) return model.error();
  Diagnosed<Compilation> compiled = compileModel(*model, options, import);
  if (!compiled.ok()) return Diagnostics(compiled.diagnostics()).at(path);
  return compiled;
}

}  // namespace aglow
