#include "cli/data_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "cli/value_files.h"
#include "import/onnx/value_file.h"

namespace aglow::cli {

namespace {

namespace fs = std::filesystem;

Error unreadable(const std::string& folder, std::string message) {
  return {.code = Code::FileRead,
          .message = std::move(message),
          .where = folder,
          .hint = "expected test_data_set_*/ with input_*.pb and output_*.pb, or 0.npy, 1.json, …"};
}

Result<std::vector<std::string>> namesIn(const std::string& folder) {
  std::error_code fault;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault))
    names.push_back(it->path().filename().string());
  if (fault) return unreadable(folder, "the folder cannot be read: " + fault.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The number N of a name "prefixNsuffix".
std::optional<size_t> numberIn(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) || !name.ends_with(suffix))
    return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

// Which output a file of `aglow run` is for.
std::optional<size_t> writtenOutput(const std::string& name) {
  for (const std::string_view suffix : {".npy", ".json", ".none", ""})
    if (const auto number = numberIn(name, "", suffix)) return number;
  return std::nullopt;
}

// The inputs that have to be given, in order: files count without initializers.
std::vector<const onnx::ValueInfo*> openInputs(const onnx::Graph& graph) {
  std::set<std::string_view> initialized;
  for (const onnx::TensorProto& t : graph.initializers) initialized.insert(t.name);
  for (const onnx::SparseTensorProto& t : graph.sparseInitializers) initialized.insert(t.values.name);
  std::vector<const onnx::ValueInfo*> inputs;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (!initialized.contains(info.name)) inputs.push_back(&info);
  return inputs;
}

Error noSuch(const std::string& file, std::string_view what, size_t number, size_t count) {
  return {.code = Code::BadBinding,
          .message = fmt::format("the file is for {} {}, but the model has {}", what, number, count),
          .where = file};
}

}  // namespace

Result<std::vector<std::string>> listDataSets(const std::string& folder) {
  AGLOW_TRY(const std::vector<std::string> names, namesIn(folder));
  std::vector<std::pair<size_t, std::string>> sets;
  bool here = false;
  for (const std::string& name : names) {
    if (const auto number = numberIn(name, "test_data_set_", "")) sets.emplace_back(*number, folder + "/" + name);
    here = here || numberIn(name, "output_", ".pb") || writtenOutput(name);
  }
  if (sets.empty() && here) return std::vector{folder};
  if (sets.empty()) return unreadable(folder, "the folder holds no test data");
  std::sort(sets.begin(), sets.end());
  std::vector<std::string> folders;
  for (auto& [number, name] : sets) folders.push_back(std::move(name));
  return folders;
}

Result<DataSet> readDataSet(const std::string& folder, const onnx::Graph& graph) {
  AGLOW_TRY(const std::vector<std::string> names, namesIn(folder));
  const std::vector<const onnx::ValueInfo*> inputs = openInputs(graph);
  DataSet set{.name = fs::path(folder).filename().string(), .inputs = {}, .outputs = {}};
  set.outputs.resize(graph.outputs.size());
  for (const std::string& name : names) {
    const std::string file = folder + "/" + name;
    if (const auto number = numberIn(name, "input_", ".pb")) {
      if (*number >= inputs.size()) return noSuch(file, "input", *number, inputs.size());
      const onnx::ValueInfo& info = *inputs[*number];
      AGLOW_TRY(onnx::NamedValue read, onnx::readProtoValue(file, info.type));
      const bool named = std::any_of(inputs.begin(), inputs.end(), [&](const auto* i) { return i->name == read.name; });
      set.inputs[named ? read.name : info.name] = std::move(read.value);
      continue;
    }
    const auto proto = numberIn(name, "output_", ".pb");
    const auto number = proto ? proto : writtenOutput(name);
    if (!number) continue;
    if (*number >= graph.outputs.size()) return noSuch(file, "output", *number, graph.outputs.size());
    const onnx::TypeProto& type = graph.outputs[*number].type;
    if (proto) {
      AGLOW_TRY(onnx::NamedValue read, onnx::readProtoValue(file, type));
      set.outputs[*number] = std::move(read.value);
    } else {
      AGLOW_TRY(set.outputs[*number], readValue(name.ends_with(".none") ? "@none" : file, type));
    }
  }
  return set;
}

}  // namespace aglow::cli
