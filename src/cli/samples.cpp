#include "cli/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cli/value_files.h"
#include "compile/text_files.h"
#include "dynamic/whole_model.h"
#include "support/progress.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

namespace aglow::cli {

namespace {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> entriesOf(const std::string& folder) {
  std::error_code fault;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault))
    entries.push_back(it->path());
  if (fault)
    return Error{.code = Code::FileRead, .message = "the folder cannot be read: " + fault.message(), .where = folder};
  std::sort(entries.begin(), entries.end());
  return entries;
}

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

}  // namespace

Result<std::vector<SampleFiles>> listSamples(const std::string& folder, const std::vector<std::string>& inputs) {
  AGLOW_TRY(const std::vector<fs::path> entries, entriesOf(folder));
  std::vector<SampleFiles> samples;
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    SampleFiles sample{.name = entry.filename().string(), .inputs = {}};
    if (fs::is_directory(entry, ignored)) {
      for (const std::string& input : inputs)
        if (const fs::path file = entry / (input + ".npy"); fs::exists(file, ignored))
          sample.inputs.emplace_back(input, file.string());
    } else if (entry.extension() == ".npy" && inputs.size() == 1) {
      sample.inputs.emplace_back(inputs.front(), entry.string());
    } else if (entry.extension() == ".npz") {
      AGLOW_TRY(const std::vector<std::string> names, npzNames(entry.string()));
      const auto path = [&](const std::string& name) { return fmt::format("{}:{}", entry.string(), name); };
      for (const std::string& input : inputs)
        if (std::find(names.begin(), names.end(), input) != names.end()) sample.inputs.emplace_back(input, path(input));
      // An array without a name is the only input.
      if (sample.inputs.empty() && inputs.size() == 1 && names.size() == 1)
        sample.inputs.emplace_back(inputs.front(), path(names.front()));
    }
    if (!sample.inputs.empty()) samples.push_back(std::move(sample));
  }
  if (!samples.empty()) return samples;
  return Error{
      .code = Code::BadBinding,
      .message = "the folder holds no samples",
      .where = folder,
      .hint = inputs.size() == 1
                  ? fmt::format("expected a .npy or .npz file for each sample, with a value of '{}'", inputs.front())
                  : fmt::format("expected a folder for each sample, with {0}.npy, or a .npz file with {1}",
                                fmt::join(inputs, ".npy, "), fmt::join(inputs, ", "))};
}

Result<double> decibelsOf(std::string_view text) {
  std::string_view number = text;
  if (number.ends_with("dB")) number.remove_suffix(2);
  double value = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (fault == std::errc() && end == number.data() + number.size() && value > 0) return value;
  return Error{.code = Code::Usage, .message = fmt::format("--reach {}: expected decibels, as in 30dB", text)};
}

WatchedModel::CompileFor compilerOf(const ModelFile& file) {
  return [&file](const CompileOptions& how, const onnx::ImportOptions& sizes) {
    return file.onnx ? compileModel(*file.onnx, how, sizes) : compileTextFile(file.path, how);
  };
}

Diagnosed<Unit> forEachSample(const ModelFile& file, const ParsedOptions& options, const std::string& folder,
                              const std::function<Diagnosed<Unit>(const ModelValues&)>& use, size_t most) {
  auto inputs = file.onnx ? Diagnosed<Inputs>(inputsOf(file.onnx->graph)) : inputsOf(file.path, options.compile);
  if (!inputs.ok()) return inputs.diagnostics();
  auto samples = listSamples(folder, inputs->names);
  if (!samples.ok()) return samples.error();
  samples->resize(std::min(samples->size(), most));
  for (size_t i = 0; i < samples->size(); ++i) {
    const SampleFiles& files = (*samples)[i];
    ModelValues values;
    for (const auto& [name, path] : files.inputs) {
      auto value = inputs->read(name, path);
      if (!value.ok()) return std::move(value).error();
      values[name] = *std::move(value);
    }
    if (auto used = use(values); !used.ok())
      return Diagnostics(used.diagnostics()).at(fmt::format("{}/{}", folder, files.name));
    reportProgress({"running samples", static_cast<int64_t>(i + 1), std::ssize(*samples)});
  }
  return Unit{};
}

}  // namespace aglow::cli
