// aglow profile: runs a model on samples and writes what they tell of its values.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/cli.h"
#include "cli/samples.h"
#include "cli/value_json.h"
#include "compile/packages.h"
#include "compile/text_files.h"
#include "dynamic/profiling.h"
#include "quant/profile_file.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct ProfileOptions {
  RunRequest request;
  std::string data, output;
  std::vector<std::string> merge;
};

// A line that is written over, for people who watch.
class Progress {
public:
  explicit Progress(size_t count) : count_(count), shown_(::isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void done(size_t samples) const {
    constexpr size_t kWidth = 30;
    if (!shown_) return;
    const size_t filled = kWidth * samples / count_;
    std::cerr << fmt::format("\r[{}{}] {} of {} samples", std::string(filled, '#'), std::string(kWidth - filled, ' '),
                             samples, count_)
              << std::flush;
  }

private:
  size_t count_;
  bool shown_;
};

// What the model takes: names, and how a file becomes a value.
struct Inputs {
  std::vector<std::string> names;
  std::function<Result<ModelValue>(const std::string& name, const std::string& file)> read;
};

Inputs inputsOf(const onnx::Graph& graph) {
  Inputs inputs;
  for (const onnx::ValueInfo& info : graph.inputs) {
    const bool initialized = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                         [&](const auto& t) { return t.name == info.name; });
    if (!initialized) inputs.names.push_back(info.name);
  }
  inputs.read = [&graph](const std::string& name, const std::string& file) {
    const auto info =
        std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const auto& i) { return i.name == name; });
    return readValue(file, info->type);
  };
  return inputs;
}

// A text form has its types.
Diagnosed<Inputs> inputsOf(const std::string& path, CompileOptions options) {
  options.stopAfter = "import";
  auto compiled = compileTextFile(path, options);
  if (!compiled.ok()) return compiled.diagnostics();
  const auto number = chooseFunction(compiled->functionNames(), {});
  if (!number.ok()) return number.error();
  Inputs inputs;
  std::map<std::string, ElemKind> kinds;
  for (const Port& port : compiled->interfaces[*number].inputs) {
    inputs.names.push_back(port.name);
    kinds[port.name] = port.type.kind();
  }
  inputs.read = [kinds](const std::string& name, const std::string& file) -> Result<ModelValue> {
    AGLOW_TRY(Tensor tensor, readNpy(file, kinds.at(name)));
    return ModelValue::of(std::move(tensor));
  };
  return inputs;
}

Diagnosed<Unit> addSamples(Profiler& profiler, const Inputs& inputs, const std::string& folder) {
  auto samples = listSamples(folder, inputs.names);
  if (!samples.ok()) return samples.error();
  const Progress progress(samples->size());
  for (size_t i = 0; i < samples->size(); ++i) {
    const SampleFiles& files = (*samples)[i];
    ModelValues values;
    for (const auto& [name, file] : files.inputs) {
      auto value = inputs.read(name, file);
      if (!value.ok()) return std::move(value).error();
      values[name] = *std::move(value);
    }
    if (auto added = profiler.add(values); !added.ok())
      return Diagnostics(added.diagnostics()).at(fmt::format("{}/{}", folder, files.name));
    progress.done(i + 1);
  }
  return Unit{};
}

Diagnosed<Unit> execute(const ProfileOptions& profile) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const ModelOptions& model = profile.request.model;
  if (isPackage(model.model))
    return Error{.code = Code::Usage, .message = "a package is compiled: profile the model that it was made from"};
  if (!model.stopAfter.empty() || !model.startFrom.empty() || model.precision != "float")
    return Error{.code = Code::Usage,
                 .message =
                     "a model is profiled whole and in floats, without --stop-after, --start-from or "
                     "--precision"};
  auto options = profile.request.parse();
  if (!options.ok()) return failed(options);
  auto backend = backendOptions(profile.request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(model);
  if (!file.ok()) return failed(file);
  quant::Profile all;
  for (const std::string& path : profile.merge) {
    auto more = quant::readProfile(path);
    if (!more.ok()) return failed(more);
    if (Status added = all.add(*more); !added.ok()) return Diagnostics(added.error()).at(path);
  }
  auto inputs = file->onnx ? Diagnosed<Inputs>(inputsOf(file->onnx->graph)) : inputsOf(file->path, options->compile);
  if (!inputs.ok()) return inputs.diagnostics();
  const Profiler::CompileFor compileText = [&](const CompileOptions& how, const onnx::ImportOptions&) {
    return compileTextFile(file->path, how);
  };
  Profiler profiler = file->onnx ? Profiler(*file->onnx, options->compile, options->import, *backend)
                                 : Profiler(compileText, options->compile, options->import, *backend);
  if (auto added = addSamples(profiler, *inputs, profile.data); !added.ok()) return added;
  if (Status added = all.add(profiler.profile()); !added.ok()) return failed(added);
  if (Status written = quant::writeProfile(profile.output, all); !written.ok()) return failed(written);
  const Status printed =
      printOut(fmt::format("{}: {} values of {} samples\n", profile.output, all.values.size(), all.samples));
  if (!printed.ok()) return failed(printed);
  return Unit{};
}

}  // namespace

Command profileCommand() {
  auto options = std::make_shared<ProfileOptions>();
  Command command{.name = "profile",
                  .doc = "Run a model on samples and write the ranges of its values, for --precision int8",
                  .options = options->request.options(),
                  .footer =
                      "The folder has a .npy file for each sample, or, where the model has several inputs, a folder "
                      "for each sample "
                      "with a file INPUT.npy for each of them.\n\n"
                      "Examples:\n  aglow profile digits.onnx --data images -o digits.json\n"
                      "  aglow run digits.onnx --precision int8 --profile digits.json --input image=three.npy",
                  .action = [options] { return finish(execute(*options)); }};
  addTo(command.options,
        {{.names = "--data", .place = &options->data, .doc = "Folder of samples", .type = "DIR", .required = true},
         {.names = "--output,-o", .place = &options->output, .doc = "The profile", .type = "FILE", .required = true},
         {"--merge", &options->merge, "Add what earlier runs found out", "FILE"}});
  return command;
}

}  // namespace aglow::cli
