#include "python/reports.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "backends/cpu/bundle/c_names.h"
#include "compile/code_files.h"
#include "compile/packages.h"
#include "compile/text_files.h"
#include "graph/text.h"
#include "import/onnx/proto.h"
#include "memory/place.h"
#include "python/arrays.h"
#include "python/errors.h"
#include "python/model.h"
#include "python/names.h"
#include "runtime/run_profile.h"
#include "runtime/threads.h"
#include "support/machine.h"
#include "tensor/compare.h"

namespace aglow::python {

namespace nb = nanobind;

namespace {

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Diagnosed<Compilation> compiledPrograms(const Model& model, const SessionOptions& options) {
  auto compiled = model.compileWhole(options);
  if (!compiled.ok()) return model.file() != nullptr ? model.placed(compiled.diagnostics()) : compiled.diagnostics();
  if (!compiled->placed()) return usage("there is no program yet after '" + options.compile.stopAfter + "'");
  return compiled;
}

void count(const onnx::Graph& graph, std::map<std::string, int64_t>& operators, int64_t& nodes, int64_t& weights);

void count(const onnx::Node& node, std::map<std::string, int64_t>& operators, int64_t& nodes, int64_t& weights) {
  nodes += 1;
  operators[node.domain.empty() ? node.opType : node.domain + "::" + node.opType] += 1;
  for (const onnx::Attribute& attribute : node.attributes) {
    if (attribute.g != nullptr) count(*attribute.g, operators, nodes, weights);
    for (const onnx::Graph& graph : attribute.graphs) count(graph, operators, nodes, weights);
  }
}

void count(const onnx::Graph& graph, std::map<std::string, int64_t>& operators, int64_t& nodes, int64_t& weights) {
  for (const onnx::Node& node : graph.nodes) count(node, operators, nodes, weights);
  for (const onnx::TensorProto& tensor : graph.initializers)
    if (const Result<Shape> shape = Shape::create(tensor.dims); shape.ok()) weights += shape->elements();
}

}  // namespace

nb::list memoryOf(const Model& model, const SessionOptions& options) {
  const Compilation compiled = released([&] { return compiledPrograms(model, options); });
  nb::list rows;
  for (const Program& program : compiled.programs) {
    const MemoryReport memory = memoryReport(program);
    nb::list buffers;
    for (const MemoryReport::Interval& buffer : memory.buffers)
      buffers.append(nb::make_tuple(text(program[buffer.region].name), text(program[buffer.region].type.text()),
                                    buffer.offset, buffer.bytes, buffer.first, buffer.last));
    int64_t shared = 0;
    for (const Region& region : program.regions)
      if (const auto* constant = region.as<ConstantInit>(); constant != nullptr && !constant->bytes.ownsBytes())
        shared += constant->bytes.bytes();
    rows.append(nb::make_tuple(text(program.name), memory.arenaBytes, memory.lowerBound, memory.constantBytes, shared,
                               memory.inputBytes, memory.outputBytes, memory.stateBytes, buffers,
                               program.instrs.size()));
  }
  return rows;
}

nb::dict profileOf(const Model& model, SessionOptions options, const std::string& function, const nb::dict& inputs,
                   int runs) {
  Inputs given;
  for (const auto& [name, value] : inputs) given[bytesOf(name)] = valueOf(value);
  MachinePeak peak;
  const std::unique_ptr<RunProfile> profile = released([&]() -> Diagnosed<std::unique_ptr<RunProfile>> {
    for (const auto& [name, value] : given)
      if (value.isTensor()) options.import.shapes[name] = value.tensor().type().shape().dims();
    auto compiled = compiledPrograms(model, options);
    if (!compiled.ok()) return compiled.diagnostics();
    const auto chosen = chooseFunction(compiled->functionNames(), function);
    if (!chosen.ok()) return model.placed(chosen.error());
    auto measured = std::make_unique<RunProfile>(compiled->programs[*chosen]);
    startThreads(options.backend);
    auto network = Network::load(*std::move(compiled), options.backend);
    if (!network.ok()) return network.error();
    const auto tensors = (*network)->bind(*chosen, valuesIn(given));
    if (!tensors.ok()) return model.placed(tensors.error());
    std::vector<Tensor> results;
    std::vector<TensorRef> in, out;
    for (const Tensor& tensor : *tensors) in.push_back(tensor.ref());
    for (const Binding& binding : (*network)->outputs(*chosen)) results.emplace_back(binding.type);
    for (const Tensor& tensor : results) out.push_back(tensor.ref());
    const int threads = (*network)->facts().threads;
    // The first run touches memory that the others find.
    for (int i = 0; i <= runs; ++i) {
      if (i > 0) measured->startRun(threads);
      const Status ran = (*network)->run(*chosen, in, out, i > 0 ? measured.get() : nullptr);
      if (!ran.ok()) return model.placed(ran.error());
      if (i > 0) measured->finishRun();
    }
    peak = measurePeak(threads);
    return measured;
  });
  nb::list rows;
  for (const RunProfile::Line* line : profile->sorted())
    rows.append(nb::make_tuple(text(line->node), text(line->instruction), text(line->kernel), line->seconds(),
                               line->cost.flops, line->cost.bytes, line->sharing.threads));
  nb::dict report;
  report["instructions"] = rows;
  report["runs"] = profile->runs();
  report["peak_flops"] = peak.flops;
  report["peak_bytes_per_second"] = peak.bytesPerSecond;
  return report;
}

nb::dict surveyOf(const Model& model, const SessionOptions& options) {
  std::map<std::string, int64_t> operators;
  int64_t nodes = 0, weights = 0;
  std::string format;
  if (const onnx::Model* file = model.file()) {
    format = file->format;
    count(file->graph, operators, nodes, weights);
    for (const onnx::Function& function : file->functions)
      for (const onnx::Node& node : function.nodes) count(node, operators, nodes, weights);
  } else {
    SessionOptions first = options;
    const Compilation compiled = released([&] {
      if (!isPackage(model.path()) && (model.form() == nullptr || !model.form()->isProgram()) &&
          !model.path().ends_with(".ir"))
        first.compile.stopAfter = "import";
      return model.compileWhole(first);
    });
    format = isPackage(model.path()) ? "package" : compiled.module ? "graph" : "instructions";
    if (compiled.module) {
      for (const auto& function : compiled.module->functions())
        for (const auto& node : function->nodes()) {
          nodes += 1;
          operators[std::string(node->def().name)] += 1;
        }
      for (const Constant* constant : compiled.module->constants()) weights += constant->type().elements();
    }
    for (const Program& program : compiled.programs) {
      for (const Instr& instr : program.instrs) {
        if (instr.isMarker()) continue;
        nodes += 1;
        operators[std::string(instrName(instr))] += 1;
      }
    }
    for (const Region* region : sharedRegions(compiled.programs))
      if (region->as<ConstantInit>() != nullptr) weights += region->type.elements();
  }
  nb::dict counts, report;
  for (const auto& [name, number] : operators) counts[text(name)] = number;
  report["format"] = text(format);
  report["nodes"] = nodes;
  report["parameters"] = weights;
  report["operators"] = counts;
  return report;
}

void emitCode(const Model& model, SessionOptions options, const std::string& folder, const std::string& what,
              const std::string& name, bool threads, bool weightsInC, const std::string& triple,
              const std::string& processor) {
  released([&]() -> Diagnosed<Unit> {
    if (std::find(std::begin(kCodeEmits), std::end(kCodeEmits), what) == std::end(kCodeEmits))
      return usage("emit does not know '" + what + "'", fmt::format("it knows {}", fmt::join(kCodeEmits, ", ")));
    if (isPackage(model.path())) return usage("a package is compiled already", "emit the model that it was made from");
    options.compile.backend = "cpu";
    options.compile.stopAfter = {};
    options.compile.cache.clear();  // as below
    if (!triple.empty()) options.compile.target.triple = triple;
    if (!processor.empty()) options.compile.target.cpu = processor;
    auto compiled = compiledPrograms(model, options);
    if (!compiled.ok()) return compiled.diagnostics();
    const CodeFileOptions code{.name = codegen::bundleName(name),
                               .emit = {what},
                               .folder = folder,
                               .threads = threads,
                               .weightsInC = weightsInC,
                               .debug = false};
    FileSet files;
    if (const Status made = files.addFolder(folder); !made.ok()) return made.error();
    std::vector<CodeSource> sources;
    sources.push_back({"", *std::move(compiled)});
    if (const auto added = addCodeFiles(files, std::move(sources), code); !added.ok()) return added.error();
    if (const Status written = files.commit(); !written.ok()) return written.error();
    return Unit{};
  });
}

void saveTo(const Model& model, SessionOptions options, const std::string& path) {
  released([&]() -> Diagnosed<Unit> {
    const bool graph = path.ends_with(".graph"), program = path.ends_with(".ir");
    if (!graph && !program && !isPackage(path))
      return usage("'" + path + "' has no ending that says what to write",
                   ".aglow for a package, .graph or .ir for text forms; export writes .onnx");
    if (isPackage(path)) options.compile.backend = "cpu";
    options.compile.stopAfter = graph ? "import" : "";
    options.compile.cache.clear();  // what is kept runs, and cannot be written again
    auto compiled = model.compileWhole(options);
    if (!compiled.ok()) return model.file() != nullptr ? model.placed(compiled.diagnostics()) : compiled.diagnostics();
    if (graph && !compiled->module) return usage("the model is compiled: there is no graph any more");
    const Status written = writeTogether([&](FileSet& files) {
      if (graph) return addModule(files, path, *compiled->module);
      if (program) return addPrograms(files, path, compiled->programs);
      std::vector<Compilation> variants;
      variants.push_back(*std::move(compiled));
      return addPackage(files, path, std::move(variants));
    });
    if (!written.ok()) return written.error();
    return Unit{};
  });
}

nb::tuple compareArrays(nb::handle got, nb::handle expected, double rtol, double atol) {
  const ModelValue a = valueOf(got), b = valueOf(expected);
  Tolerance tolerance = defaultTolerance(b.tensor().type().kind());
  if (rtol >= 0) tolerance.rtol = rtol;
  if (atol >= 0) tolerance.atol = atol;
  const Comparison found = compare(a.tensor(), b.tensor(), tolerance);
  return nb::make_tuple(found.agrees(), text(found.typeFault), found.maxAbs, found.maxRel, found.beyond);
}

}  // namespace aglow::python
