#include "engines.h"

#include <algorithm>

#include "backends/interpreter/interpreter.h"
#include "backends/winograd.h"
#include "dynamic/whole_model.h"
#include "import/onnx/export.h"
#include "import/onnx/model_writer.h"
#include "optimize/rules.h"
#include "random_graph.h"

namespace aglow::differential {

namespace {

Engine interpreter() {
  CompileOptions options;
  options.backend = kReferenceBackend;
  return {.name = "interpreter", .options = std::move(options)};
}

Engine cpu(int level, std::string processor = {}, int threads = 1) {
  CompileOptions options;
  options.backend = "cpu";
  options.target.optLevel = level;
  options.target.cpu = processor;
  std::string name = "cpu -O" + std::to_string(level);
  if (!processor.empty()) name += " " + processor;
  if (threads > 1) name += " threads " + std::to_string(threads);
  return {.name = std::move(name), .options = std::move(options), .threads = threads};
}

Engine exported() {
  Engine engine = interpreter();
  engine.name = "exported";
  engine.exported = true;
  return engine;
}

Engine laidOut(int64_t lanes) {
  Engine engine = interpreter();
  engine.name += " lanes " + std::to_string(lanes) + " fused";
  engine.options.lanes = lanes;
  engine.options.fuse = true;
  return engine;
}

// Fused instructions as the loops that code generators print.
Engine evaluatedNests() {
  Engine engine = interpreter();
  engine.name += " nests";
  engine.options.fuse = true;
  engine.nests = true;
  return engine;
}

Engine without(Engine engine, const std::vector<std::string>& passes) {
  for (const std::string& pass : passes) {
    engine.name += " without " + pass;
    engine.options.disabled.insert(pass);
  }
  return engine;
}

const std::vector<std::string>& switches() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"min-peak-memory", "fuse"};
    for (const RuleTheme& theme : ruleThemes())
      for (const Rule& rule : theme.rules) all.emplace_back(rule.name);
    return all;
  }();
  return names;
}

bool hasBackend(std::string_view name) {
  const std::vector<std::string_view> names = backendNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Through the bytes of a file.
Diagnosed<Compilation> compileExported(const Case& c, const CompileOptions& options) {
  const Result<onnx::Model> made = onnx::exportModel(c.function());
  if (!made.ok()) return made.error();
  const auto bytes = std::make_shared<std::string>(onnx::serialized(*made));
  const Result<onnx::Model> read = onnx::parseModel(std::as_bytes(std::span(*bytes)), bytes);
  if (!read.ok()) return read.error();
  return compileModel(*read, options);
}

}  // namespace

std::vector<Engine> enginesFor(uint64_t seed) {
  Random random(seed ^ 0xe61e5);
  std::vector<Engine> engines{interpreter(), exported()};
  if (random.chance(0.3)) engines.push_back(laidOut(random.between(1, 9)));
  if (seed % 2 == 0) engines.push_back(evaluatedNests());
  if (!hasBackend("cpu")) return engines;
  const std::string processor = random.chance(0.25) ? "x86-64-v3" : random.chance(0.15) ? "x86-64" : "";
  engines.push_back(cpu(0, random.chance(0.2) ? "x86-64-v3" : ""));
  engines.push_back(cpu(3, processor, random.chance(0.2) ? 2 : 1));
  if (random.chance(0.3)) engines.back() = without(engines.back(), {random.pick(switches()), random.pick(switches())});
  return engines;
}

std::vector<Engine> deviceEngines() {
  Engine device = interpreter();
  device.name = device.options.backend = "opencl";
  return {interpreter(), std::move(device)};
}

std::vector<Engine> allEngines() {
  std::vector<Engine> engines{interpreter(), exported(), laidOut(4), laidOut(8), evaluatedNests()};
  if (!hasBackend("cpu")) return engines;
  for (const int level : {0, 1, 3})
    for (const char* processor : {"", "x86-64-v3", "x86-64"}) engines.push_back(cpu(level, processor));
  engines.push_back(cpu(3, "", 2));
  engines.push_back(without(cpu(3), {"fuse"}));
  return engines;
}

Engine withoutRelaxedRules(Engine engine) {
  for (const RuleTheme& theme : ruleThemes())
    for (const Rule& rule : theme.rules)
      if (rule.keeps == Keeps::Finite) engine.options.disabled.insert(std::string(rule.name));
  engine.options.disabled.insert(std::string(kWinograd));  // its tiles mix neighbours
  return engine;
}

namespace {

Result<std::unique_ptr<Executable>> loaded(Compilation compiled, const Engine& engine) {
  if (!engine.nests) return load(std::move(compiled), {.threads = engine.threads});
  InterpreterOptions options;
  options.nests = true;
  AGLOW_TRY(InterpreterExecutable executable, InterpreterExecutable::create(std::move(compiled.programs), options));
  return std::unique_ptr<Executable>(std::make_unique<InterpreterExecutable>(std::move(executable)));
}

}  // namespace

Result<std::map<std::string, Tensor>> run(const Case& c, const Engine& engine) {
  try {
    Diagnosed<Compilation> compiled =
        engine.exported ? compileExported(c, engine.options) : compileModule(cloned(c).module, engine.options);
    if (!compiled.ok()) return compiled.diagnostics().errors().front();
    AGLOW_TRY(const std::unique_ptr<Executable> executable, loaded(*std::move(compiled), engine));
    std::vector<Tensor> bound;
    for (const Binding& input : executable->inputs()) bound.push_back(c.inputs.find(input.name)->second);
    AGLOW_TRY(std::vector<Tensor> results, executable->run(bound));
    std::map<std::string, Tensor> named;
    for (size_t i = 0; i < results.size(); ++i) named[executable->outputs()[i].name] = std::move(results[i]);
    return named;
  } catch (const InternalError& fault) {
    return Error{.code = Code::BadVerify, .message = std::string("internal fault: ") + fault.what()};
  }
}

}  // namespace aglow::differential
