// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/cli.h"
#include "cli/session.h"
#include "compile/text_files.h"
#include "support/quote.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  SessionRequest session;
  std::string outputDir;
};

// Writes the outputs under their positions. What was written is taken back when a later one fails.
class OutputWriter {
public:
  OutputWriter() = default;
  ~OutputWriter() {
    if (done_) return;
    std::error_code ignored;
    for (auto it = written_.rbegin(); it != written_.rend(); ++it) std::filesystem::remove(*it, ignored);
  }

  Status write(const std::string& folder, const std::vector<ModelValue>& outputs) {
    AGLOW_OK(makeFolder(folder));
    for (size_t i = 0; i < outputs.size(); ++i) AGLOW_OK(write(fmt::format("{}/{}", folder, i), outputs[i]));
    done_ = true;
    return {};
  }

private:
  Status makeFolder(const std::string& folder) {
    std::error_code fault;
    if (std::filesystem::create_directories(folder, fault)) written_.push_back(folder);
    if (fault)
      return Error{.code = Code::FileWrite, .message = "cannot create the folder: " + fault.message(), .where = folder};
    return {};
  }

  Status write(const std::string& base, const ModelValue& value) {
    if (value.none) {
      written_.push_back(base + ".none");
      if (std::ofstream(base + ".none").good()) return {};
      return Error{.code = Code::FileWrite, .message = "cannot be written", .where = base + ".none"};
    }
    if (value.isSequence) {
      AGLOW_OK(makeFolder(base));
      for (size_t i = 0; i < value.tensors.size(); ++i)
        AGLOW_OK(write(fmt::format("{}/{}", base, i), ModelValue::of(value.tensors[i])));
      for (size_t i = 0; i < value.strings.size(); ++i)
        AGLOW_OK(write(fmt::format("{}/{}", base, i), ModelValue::of(value.strings[i])));
      return {};
    }
    AGLOW_OK(value.isStrings() ? writeNpy(base + ".npy", value.strings.front())
                               : writeNpy(base + ".npy", value.tensor()));
    written_.push_back(base + ".npy");
    return {};
  }

  std::vector<std::string> written_;
  bool done_ = false;
};

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

// What one function gave, or the state that is left at the end.
struct NamedOutputs {
  std::string prefix;  // of the names; where one function ran there is none
  std::vector<std::string> names;
  std::vector<ModelValue> values;
};

Status show(const std::vector<NamedOutputs>& all) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, const auto& tensor) {
    out += fmt::format("{} : {} = {}\n", name, type, preview(tensor));
  };
  for (const NamedOutputs& outputs : all) {
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      const ModelValue& value = outputs.values[i];
      const std::string name = outputs.prefix + outputs.names[i];
      if (value.none) out += fmt::format("{} : none\n", name);
      const auto itemName = [&](size_t k) { return value.isSequence ? fmt::format("{}[{}]", name, k) : name; };
      for (size_t k = 0; k < value.tensors.size(); ++k)
        add(itemName(k), value.tensors[k].type().text(), value.tensors[k]);
      for (size_t k = 0; k < value.strings.size(); ++k) add(itemName(k), value.strings[k].text(), value.strings[k]);
    }
  }
  return printOut(out);
}

Diagnosed<std::vector<NamedOutputs>> runModel(const SessionRequest& request) {
  auto opened = openSession(request);
  if (!opened.ok()) return opened.diagnostics();
  auto outputs = opened->session->run(opened->inputs);
  if (!outputs.ok()) return Diagnostics(outputs.diagnostics()).at(request.model.model);
  NamedOutputs named{.prefix = {}, .names = {}, .values = *std::move(outputs)};
  for (const onnx::ValueInfo& info : opened->session->graph().outputs) named.names.push_back(info.name);
  return std::vector{std::move(named)};
}

Result<NamedOutputs> runFunction(Executable& executable, size_t function, const std::map<std::string, Tensor>& given) {
  // Inputs that the program does not read (dead, folded away, or another function's) need no place in it.
  std::map<std::string, Tensor> used;
  for (const Binding& binding : executable.inputs(function))
    if (const auto it = given.find(binding.name); it != given.end()) used.insert(*it);
  AGLOW_TRY(const std::vector<Tensor> inputs, bindByName(executable.inputs(function), used));
  AGLOW_TRY(const std::vector<Tensor> outputs, executable.run(inputs, nullptr, function));
  NamedOutputs named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    named.names.push_back(executable.outputs(function)[i].name);
    named.values.push_back(ModelValue::of(outputs[i]));
  }
  return named;
}

// A text form is compiled whole, with its sizes. Its functions run in the order in which they are named, and at the end
// come the parts of the state.
Diagnosed<std::vector<NamedOutputs>> runPrograms(const SessionRequest& request) {
  auto opened = openProgram(request, true);
  if (!opened.ok()) return opened.diagnostics();
  std::vector<NamedOutputs> all;
  if (opened->executable == nullptr) return all;
  Executable& executable = *opened->executable;
  std::vector<std::string> names = request.model.functions;
  if (names.empty()) names.emplace_back();
  for (const std::string& name : names) {
    const auto function = executable.find(name);
    if (!function.ok()) return Diagnostics(function.error()).at(request.model.model);
    auto outputs = runFunction(executable, *function, opened->given);
    if (!outputs.ok()) return Diagnostics(outputs.error()).at(request.model.model);
    if (names.size() > 1) outputs->prefix = name + ": ";
    all.push_back(*std::move(outputs));
  }
  NamedOutputs state{.prefix = "state "};
  for (size_t i = 0; i < executable.state().bindings().size(); ++i) {
    state.names.push_back(executable.state().bindings()[i].name);
    state.values.push_back(ModelValue::of(executable.state().read(i)));
  }
  all.push_back(std::move(state));
  return all;
}

Diagnosed<Unit> execute(const RunOptions& run) {
  const bool wholly = isTextForm(run.session.model.model) || !run.session.model.stopAfter.empty();
  auto outputs = wholly ? runPrograms(run.session) : runModel(run.session);
  if (!outputs.ok()) return outputs.diagnostics();
  if (!run.session.model.stopAfter.empty()) return Unit{};
  std::vector<ModelValue> values;
  for (const NamedOutputs& one : *outputs) values.insert(values.end(), one.values.begin(), one.values.end());
  const Status written = run.outputDir.empty() ? show(*outputs) : OutputWriter().write(run.outputDir, values);
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
  command->footer(
      "Several functions run one after the other; state stays from one to the next, and is shown or written after "
      "the outputs.\n\n"
      "Examples:\n  aglow run digits.onnx --input image=three.npy --output-dir out\n"
      "  aglow run counter.graph --function add,add,reset,add --input x=two.npy");
  command->callback([options, &chosen] {
    chosen = [options] {
      const Diagnosed<Unit> done = execute(*options);
      return done.ok() ? ExitCode::Ok : report(done.diagnostics());
    };
  });
}

}  // namespace aglow::cli
