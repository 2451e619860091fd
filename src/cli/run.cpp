// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/session.h"
#include "compile/text_files.h"
#include "support/file_set.h"
#include "support/quote.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  SessionRequest session;
  std::string outputDir;
};

// Outputs go under their positions, the items of a sequence into a folder.
Status addValue(FileSet& files, const std::string& base, const ModelValue& value) {
  if (value.none) return files.add(base + ".none", std::string_view());
  if (value.isStrings()) return addNpy(files, base + ".npy", value.strings.front());
  if (!value.isSequence) return addNpy(files, base + ".npy", value.tensor());
  AGLOW_OK(files.addFolder(base));
  for (size_t i = 0; i < value.tensors.size(); ++i)
    AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.tensors[i]));
  for (size_t i = 0; i < value.strings.size(); ++i)
    AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.strings[i]));
  return {};
}

Status writeOutputs(const std::string& folder, const std::vector<ModelValue>& outputs) {
  return writeTogether([&](FileSet& files) -> Status {
    AGLOW_OK(files.addFolder(folder));
    for (size_t i = 0; i < outputs.size(); ++i)
      AGLOW_OK(addValue(files, fmt::format("{}/{}", folder, i), outputs[i]));
    return {};
  });
}

constexpr size_t kShown = 12;

std::string preview(const StringTensor& tensor) {
  std::string out;
  const size_t count = tensor.strings().size();
  for (size_t i = 0; i < std::min(count, kShown); ++i) out += (i > 0 ? ", " : "") + aglow::quoted(tensor.strings()[i]);
  return "[" + out + (count > kShown ? ", …]" : "]");
}

std::string preview(const Tensor& tensor) {
  std::string out;
  const bool real = isFloat(tensor.type().kind());
  const std::vector<double> reals = real ? tensor.doubles() : std::vector<double>{};
  const std::vector<int64_t> ints = real ? std::vector<int64_t>{} : tensor.toInts();
  const size_t count = real ? reals.size() : ints.size();
  for (size_t i = 0; i < std::min(count, kShown); ++i)
    out += (i > 0 ? ", " : "") + (real ? fmt::format("{:.6g}", reals[i]) : fmt::format("{}", ints[i]));
  return "[" + out + (count > kShown ? ", …]" : "]");
}

struct NamedOutputs {
  std::vector<std::string> names;
  std::vector<ModelValue> values;
};

Status show(const NamedOutputs& outputs) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, const auto& tensor) {
    out += fmt::format("{} : {} = {}\n", name, type, preview(tensor));
  };
  for (size_t i = 0; i < outputs.values.size(); ++i) {
    const ModelValue& value = outputs.values[i];
    const std::string& name = outputs.names[i];
    if (value.none) out += fmt::format("{} : none\n", name);
    const auto itemName = [&](size_t k) { return value.isSequence ? fmt::format("{}[{}]", name, k) : name; };
    for (size_t k = 0; k < value.tensors.size(); ++k)
      add(itemName(k), value.tensors[k].type().text(), value.tensors[k]);
    for (size_t k = 0; k < value.strings.size(); ++k) add(itemName(k), value.strings[k].text(), value.strings[k]);
  }
  return printOut(out);
}

Diagnosed<NamedOutputs> runModel(const SessionRequest& request) {
  auto opened = openSession(request);
  if (!opened.ok()) return opened.diagnostics();
  auto outputs = opened->session->run(opened->inputs);
  if (!outputs.ok()) return Diagnostics(outputs.diagnostics()).at(request.model.model);
  NamedOutputs named{.names = {}, .values = *std::move(outputs)};
  for (const onnx::ValueInfo& info : opened->session->graph().outputs) named.names.push_back(info.name);
  return named;
}

// A text form is one program, with its sizes.
Diagnosed<NamedOutputs> runProgram(const SessionRequest& request) {
  auto opened = openProgram(request, true);
  if (!opened.ok()) return opened.diagnostics();
  Executable* executable = opened->executable.get();
  if (executable == nullptr) return NamedOutputs{};
  // Inputs that the program does not read (dead, or folded away) need no place in it.
  std::map<std::string, Tensor> used;
  for (const Binding& binding : executable->inputs())
    if (const auto it = opened->given.find(binding.name); it != opened->given.end()) used.insert(*it);
  auto inputs = bindByName(executable->inputs(), used);
  if (!inputs.ok()) return Diagnostics(inputs.error());
  auto outputs = executable->run(*inputs);
  if (!outputs.ok()) return Diagnostics(outputs.error()).at(request.model.model);
  NamedOutputs named;
  for (size_t i = 0; i < outputs->size(); ++i) {
    named.names.push_back(executable->outputs()[i].name);
    named.values.push_back(ModelValue::of((*outputs)[i]));
  }
  return named;
}

Diagnosed<Unit> execute(const RunOptions& run) {
  const bool wholly = isTextForm(run.session.model.model) || !run.session.model.stopAfter.empty();
  auto outputs = wholly ? runProgram(run.session) : runModel(run.session);
  if (!outputs.ok()) return outputs.diagnostics();
  if (!run.session.model.stopAfter.empty()) return Unit{};
  const Status written = run.outputDir.empty() ? show(*outputs) : writeOutputs(run.outputDir, outputs->values);
  if (!written.ok()) return Diagnostics(written.error());
  return Unit{};
}

}  // namespace

void addRun(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Compile a model in memory and run it");
  options->session.add(*command);
  command
      ->add_option("--output-dir,-o", options->outputDir, "Where to write 0.npy, 1.npy, … (default: show the outputs)")
      ->type_name("DIR");
  command->footer("Example:\n  aglow run digits.onnx --input image=three.npy --output-dir out");
  command->callback([options, &chosen] {
    chosen = [options] {
      const Diagnosed<Unit> done = execute(*options);
      return done.ok() ? ExitCode::Ok : report(done.diagnostics());
    };
  });
}

}  // namespace aglow::cli
