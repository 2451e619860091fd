#include "compile/compile.h"

#include <fmt/format.h>

#include "backends/interpreter/interpreter.h"
#ifdef AGLOW_LLVM
#include "backends/cpu/cpu.h"
#endif
#include "compile/evaluate.h"
#include "compile/phases.h"
#include "compile/text_files.h"
#include "graph/text.h"
#include "import/model_file.h"

namespace aglow {

namespace {

using MakeBackend = Result<std::shared_ptr<const Backend>>(const CompileOptions& options);

struct BackendRow {
  std::string_view name;
  MakeBackend* make;
};

constexpr BackendRow kBackends[] = {
    {"interpreter",
     [](const CompileOptions&) -> Result<std::shared_ptr<const Backend>> {
       return std::shared_ptr<const Backend>(std::make_shared<Interpreter>());
     }},
#ifdef AGLOW_LLVM
    {"cpu",
     [](const CompileOptions& options) -> Result<std::shared_ptr<const Backend>> {
       AGLOW_TRY(std::shared_ptr<const Backend> backend, CpuBackend::create(options.target));
       return backend;
     }},
#endif
};

// A graph that did not come from a model file takes and gives its placeholders under their own names.
Interface interfaceOf(const Function& function) {
  Interface interface;
  const auto port = [](const Placeholder* p) {
    return Port{
        .kind = Port::Kind::Tensor, .name = p->name(), .placeholder = p->name(), .type = p->type(), .items = {}};
  };
  for (const Placeholder* p : inputsOf(function)) interface.inputs.push_back(port(p));
  for (const Placeholder* p : outputsOf(function)) interface.outputs.push_back(port(p));
  return interface;
}

Interface interfaceOf(const Program& program) {
  Interface interface;
  const auto port = [&](RegionId id) {
    return Port{.kind = Port::Kind::Tensor,
                .name = program[id].name,
                .placeholder = program[id].name,
                .type = program[id].type,
                .items = {}};
  };
  for (const RegionId id : program.inputs()) interface.inputs.push_back(port(id));
  for (const RegionId id : program.outputs()) interface.outputs.push_back(port(id));
  return interface;
}

Diagnosed<Compilation> finish(Compilation compilation, const CompileOptions& options) {
  auto backend = makeBackend(options);
  if (!backend.ok()) return backend.error();
  compilation.backend = *backend;
  ReferenceEvaluator evaluator;
  PipelineState state{.options = options, .backend = **backend, .result = compilation, .evaluator = evaluator};
  if (Status status = runPhases(state); !status.ok()) return status.error();
  return compilation;
}

}  // namespace

std::vector<std::string_view> backendNames() {
  std::vector<std::string_view> names;
  for (const BackendRow& row : kBackends) names.push_back(row.name);
  return names;
}

Result<std::shared_ptr<const Backend>> makeBackend(const CompileOptions& options) {
  const std::string& name = options.backend;
  for (const BackendRow& row : kBackends)
    if (row.name == name) return row.make(options);
  return Error{.code = Code::Usage,
               .message = fmt::format("there is no backend '{}'", name),
               .where = {},
               .hint = fmt::format("this build has: {}", fmt::join(backendNames(), ", "))};
}

Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, const CompileOptions& options) {
  if (module->functions().empty()) return Error{.code = Code::BadGraph, .message = "the module has no function"};
  Compilation compilation;
  compilation.function = module->functions().front().get();
  compilation.interface = interfaceOf(*compilation.function);
  compilation.module = std::move(module);
  return finish(std::move(compilation), options);
}

Diagnosed<Compilation> compileModel(const onnx::Model& model, const CompileOptions& options) {
  ReferenceEvaluator evaluator;
  auto imported = onnx::importModel(model, {.shapes = options.shapes,
                                            .dims = options.dims,
                                            .given = options.given,
                                            .evaluator = &evaluator,
                                            .tolerance = options.tolerance});
  if (!imported.ok()) return imported.diagnostics();
  return compileImported(*std::move(imported), options);
}

Diagnosed<Compilation> compileImported(onnx::ImportedModel imported, const CompileOptions& options) {
  Compilation compilation;
  compilation.module = std::move(imported.module);
  compilation.function = compilation.module->functions().front().get();
  compilation.interface = std::move(imported.interface);
  return finish(std::move(compilation), options);
}

Diagnosed<Compilation> compileFile(const std::string& path, const CompileOptions& options) {
  if (path.ends_with(".graph")) {
    auto module = readModule(path);
    if (!module.ok()) return module.error();
    return compileModule(*std::move(module), options);
  }
  if (path.ends_with(".ir")) {
    auto program = readProgram(path);
    if (!program.ok()) return program.error();
    Compilation compilation;
    compilation.interface = interfaceOf(*program);
    compilation.program = *std::move(program);
    return finish(std::move(compilation), options);
  }
  auto model = readModelFile(path);
  if (!model.ok()) return model.error();
  Diagnosed<Compilation> compiled = compileModel(*model, options);
  if (!compiled.ok()) return Diagnostics(compiled.diagnostics()).at(path);
  return compiled;
}

Result<std::unique_ptr<Executable>> load(Compilation compilation, const BackendOptions& options) {
  AGLOW_CHECK(compilation.program && compilation.program->placed(), "loading a program that is not complete");
  return compilation.backend->compile(*std::move(compilation.program), options);
}

Result<std::map<std::string, Tensor>> runModule(std::unique_ptr<Module> module,
                                                const std::map<std::string, Tensor>& inputs,
                                                const CompileOptions& options) {
  Diagnosed<Compilation> compiled = compileModule(std::move(module), options);
  if (!compiled.ok()) return compiled.diagnostics().errors().front();
  AGLOW_TRY(const std::unique_ptr<Executable> executable, load(*std::move(compiled)));
  AGLOW_TRY(const std::vector<Tensor> bound, bindByName(executable->inputs(), inputs));
  AGLOW_TRY(std::vector<Tensor> results, executable->run(bound));
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i) named[executable->outputs()[i].name] = std::move(results[i]);
  return named;
}

}  // namespace aglow
