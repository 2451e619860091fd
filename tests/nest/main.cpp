// Every nest of whole models, evaluated and as C, against the interpreter: nest_models FOLDER, with NAME/model.onnx and
// NAME/test_data_set_0/input_*.pb. The data set gives the sizes; values are random.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "backends/cpu/cpu.h"
#include "dynamic/session.h"
#include "import/model_file.h"
#include "import/onnx/value_file.h"
#include "inst/fused.h"
#include "nest_check.h"
#include "support/rng.h"

namespace {

using namespace aglow;  // NOLINT: a program of its own
using testing_support::NestCheck;

Tensor drawn(Rng& rng, const Type& type, bool zeros) {
  std::vector<double> values(static_cast<size_t>(type.elements()));
  for (double& value : values) {
    const bool byte = elemBytes(type.kind()) == 1 && type.kind() != ElemKind::Bool;
    // What is wide may be an index.
    value = isFloat(type.kind()) ? rng.real(-1, 1) : zeros ? 0 : static_cast<double>(rng.between(0, byte ? 100 : 1));
  }
  return Tensor::fromDoubles(type, values);
}

// With indices that fit at the second try, if need be.
Result<NestCheck::Counts> check(const Program& program) {
  AGLOW_TRY(InterpreterExecutable executable, InterpreterExecutable::create(program));
  const auto view = [](const Instr& instr) -> std::vector<int64_t> {
    if (!instr.plan) return {};
    return {instr.plan->epilogue->begin(), instr.plan->epilogue->end()};
  };
  for (const bool zeros : {false, true}) {
    AGLOW_TRY(const std::unique_ptr<NestCheck> nests, NestCheck::create(executable, view));
    Rng rng(7);
    std::vector<Tensor> inputs;
    for (const Binding& input : executable.inputs()) inputs.push_back(drawn(rng, input.type, zeros));
    const auto results = executable.run(inputs, nests.get());
    if (results.ok() || zeros) {
      if (!results.ok()) std::cout << "  ended by " << results.error().text() << "\n";
      return nests->counts();
    }
  }
  return NestCheck::Counts{};
}

Result<std::map<std::string, ModelValue>> inputsOf(const std::filesystem::path& folder, const onnx::Graph& graph) {
  std::map<std::string, ModelValue> values;
  size_t number = 0;
  for (const onnx::ValueInfo& input : graph.inputs) {
    const auto same = [&](const auto& initializer) { return initializer.name == input.name; };
    if (std::any_of(graph.initializers.begin(), graph.initializers.end(), same)) continue;
    const auto file = folder / "test_data_set_0" / fmt::format("input_{}.pb", number++);
    AGLOW_TRY(const onnx::NamedValue value, onnx::readProtoValue(file.string(), input.type));
    values[value.name.empty() ? input.name : value.name] = value.value;
  }
  return values;
}

// The programs that a model becomes when it runs on its data set.
Diagnosed<std::vector<Program>> programsOf(const std::filesystem::path& folder, const CompileOptions& compile) {
  auto model = readModelFile((folder / "model.onnx").string());
  if (!model.ok()) return model.error();
  auto inputs = inputsOf(folder, model->graph);
  if (!inputs.ok()) return inputs.error();
  std::vector<Program> programs;
  SessionOptions options;
  options.compile = compile;
  options.compiled = [&](const Compilation& part) {
    programs.insert(programs.end(), part.programs.begin(), part.programs.end());
  };
  auto session = Session::open(*std::move(model), options);
  if (!session.ok()) return session.diagnostics();
  if (auto run = (*session)->run(*inputs); !run.ok()) return run.diagnostics();
  return programs;
}

// Operators that the CPU keeps whole have no reference kernel.
bool interprets(const std::vector<Program>& programs) {
  const auto composite = [](const Instr& instr) {
    return instr.kind == Instr::Kind::Compute && instr.attrs.op().kind == OpKind::Composite;
  };
  return std::all_of(programs.begin(), programs.end(), [&](const Program& program) {
    return std::none_of(program.instrs.begin(), program.instrs.end(), [&](const Instr& instr) {
      const std::span<const Instr> body = bodyOf(instr);
      return std::any_of(body.begin(), body.end(), composite);
    });
  });
}

// As fused for the CPU, or with all that can be fused.
Diagnosed<NestCheck::Counts> checkModel(const std::filesystem::path& folder, int lanes) {
  CompileOptions options;
  options.backend = "cpu";
  options.target.optLevel = 0;
  auto programs = programsOf(folder, options);
  if (programs.ok() && !interprets(*programs)) {
    CompileOptions everything;
    everything.backend = "interpreter";
    everything.fuse = true;
    everything.lanes = lanes;
    programs = programsOf(folder, everything);
  }
  if (!programs.ok()) return programs.diagnostics();
  NestCheck::Counts counts;
  for (const Program& program : *programs) {
    const auto found = check(program);
    if (!found.ok()) return found.error();
    counts += *found;
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  const auto backend = CpuBackend::create({});
  if (argc < 2 || !backend.ok()) {
    std::cerr << "nest_models FOLDER [NAME...]\n";
    return 1;
  }
  const std::vector<std::string> wanted(argv + 2, argv + argc);
  NestCheck::Counts all;
  int models = 0, failed = 0;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (std::filesystem::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const std::filesystem::path& folder : folders) {
    const std::string name = folder.filename().string();
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    ++models;
    auto counts = checkModel(folder, (*backend)->target().shape().lanes);
    if (!counts.ok()) {
      for (const Error& error : counts.diagnostics().errors()) std::cout << fmt::format("{}: {}\n", name, error.text());
      ++failed;
      continue;
    }
    std::cout << fmt::format("{}: {} loops, {} with reductions, {} epilogues, {} differences\n", name, counts->loops,
                             counts->reducing, counts->epilogues, counts->differences.size())
              << std::flush;
    for (const std::string& text : counts->differences) std::cout << text;
    all += *counts;
  }
  std::cout << fmt::format("{} models, {} failed: {} loops, {} with reductions, {} epilogues, {} differences\n", models,
                           failed, all.loops, all.reducing, all.epilogues, all.differences.size());
  return failed == 0 && all.differences.empty() ? 0 : 1;
}
