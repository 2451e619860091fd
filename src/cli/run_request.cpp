#include "cli/run_request.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>

#include "backends/cpu/code/code_cache.h"
#include "support/machine.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFrozenElements = 256;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Inputs of a text form are its placeholders.
Result<std::map<std::string, Tensor>> readPlaceholders(const std::vector<Interface>& interfaces,
                                                       const std::vector<std::string>& assignments) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& text : assignments) {
    AGLOW_TRY(const auto pair, splitAtEquals(text, "--input"));
    const Port* port = nullptr;
    for (const Interface& interface : interfaces)
      for (const Port& one : interface.inputs)
        if (one.name == pair.first) port = &one;
    if (port == nullptr)
      return Error{.code = Code::BadBinding, .message = fmt::format("the program has no input '{}'", pair.first)};
    AGLOW_TRY(Tensor tensor, readNpy(pair.second, port->type.kind()));
    // A file holds no scales; those are the program's.
    if (tensor.type().shape() == port->type.shape()) tensor = tensor.retyped(port->type);
    tensors[pair.first] = std::move(tensor);
  }
  return tensors;
}

// The placeholders' values, by name, from what was given for the model's inputs.
Result<std::map<std::string, Tensor>> collect(const Interface& interface,
                                              const std::map<std::string, ModelValue>& given, bool needAll) {
  std::map<std::string, Tensor> tensors;
  for (const Port& port : interface.inputs) {
    const auto it = given.find(port.name);
    if (it == given.end() && needAll)
      return Error{.code = Code::MissingBinding,
                   .message = fmt::format("input '{}' ({}) was not given", port.name, port.type.text()),
                   .where = {},
                   .hint = fmt::format("--input '{}=FILE.npy'", port.name)};
    if (it == given.end()) continue;
    if (port.kind == Port::Kind::Tensor) tensors[port.placeholder] = it->second.tensors.front();
    for (size_t i = 0; i < port.items.size(); ++i)
      if (port.items[i].kind == Port::Kind::Tensor) tensors[port.items[i].placeholder] = it->second.tensors[i];
  }
  return tensors;
}

}  // namespace

void RunRequest::add(CLI::App& command) {
  model.add(command);
  command
      .add_option(
          "--input,-i", inputs,
          "An input: NAME=FILE.npy; a sequence is a folder with 0.npy, 1.npy, …; a map is a .json file; an empty "
          "optional is @none")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  command.add_option("--threads", threads, "Threads at most (default: one per processor)")
      ->envname("AGLOW_THREADS")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxThreads));
  command
      .add_option(
          "--cache", cache,
          "Folder where generated code is kept for the next time, or off (default: AGLOW_CACHE_DIR, or aglow in "
          "the user's cache)")
      ->type_name("DIR");
  command.add_flag("--pad", pad, "Fill inputs up with zeros to the next size of those that --dim NAME=1,4,16 prepares");
}

Result<BackendOptions> backendOptions(const RunRequest& request) {
  AGLOW_TRY(const int64_t limit, request.model.memoryLimitBytes());
  BackendOptions options{.memoryLimit = limit,
                         .threads = request.threads > 0 ? request.threads : machineThreads(),
                         .cache = codegen::cacheFolder(request.cache)};
  for (const std::string& note : startThreads(options)) std::cerr << "note: " << note << "\n";
  return options;
}

namespace {

// Where values are known that --value would have to name otherwise, it says no more than --input.
Result<std::map<std::string, ModelValue>> inputsOf(const RunRequest& request, const onnx::Graph& graph) {
  std::vector<std::string> assignments = request.inputs;
  assignments.insert(assignments.end(), request.model.values.begin(), request.model.values.end());
  return readInputs(graph, assignments, "--input");
}

}  // namespace

Diagnosed<OpenedSession> openSession(const RunRequest& words) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const Clock::time_point start = Clock::now();
  RunRequest request = words;
  auto several = takeSeveralSizes(request.model.dims);
  if (!several.ok()) return failed(several);
  auto compile = request.model.parse();
  if (!compile.ok()) return failed(compile);
  auto backend = backendOptions(request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(request.model);
  if (!file.ok()) return failed(file);
  AGLOW_CHECK(file->onnx.has_value(), "a text form has no session");
  auto inputs = inputsOf(request, file->onnx->graph);
  if (!inputs.ok()) return failed(inputs);

  OpenedSession opened;
  opened.inputs = *std::move(inputs);
  // What comes as an input says the same as --shape and --dim; where both are there, they have to agree.
  SessionOptions options{.compile = *std::move(compile), .backend = *std::move(backend), .pad = request.pad};
  options.prepared.insert(several->begin(), several->end());
  if (request.pad && options.prepared.empty())
    return Error{.code = Code::Usage,
                 .message = "--pad needs sizes to fill up to",
                 .where = {},
                 .hint = "name them with --dim, e.g. --dim batch=1,4,16"};
  if (request.model.timing)
    options.compiled = [](const Compilation& compilation) { std::cerr << timingTable(compilation); };
  const Clock::time_point loaded = Clock::now();
  auto session = Session::open(*std::move(file->onnx), std::move(options));
  if (!session.ok()) return Diagnostics(session.diagnostics()).at(request.model.model);
  opened.session = *std::move(session);
  opened.loadSeconds = seconds(start, loaded);
  opened.compileSeconds = seconds(loaded, Clock::now());
  return opened;
}

Diagnosed<OpenedProgram> openProgram(const RunRequest& request, bool needAll,
                                     const std::function<Status(const Compilation&)>& seen) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const Clock::time_point start = Clock::now();
  auto options = request.model.parse();
  if (!options.ok()) return failed(options);
  auto backend = backendOptions(request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(request.model);
  if (!file.ok()) return failed(file);
  std::map<std::string, ModelValue> all;
  if (file->onnx) {
    auto given = inputsOf(request, file->onnx->graph);
    if (!given.ok()) return failed(given);
    options->given = *std::move(given);
    // Large inputs decide no shapes; were one taken for a constant after all, the model would be computed when
    // compiling.
    all = options->given;
    for (const auto& [name, value] : all) {
      const bool named = std::any_of(request.model.values.begin(), request.model.values.end(),
                                     [&](const std::string& text) { return text.starts_with(name + "="); });
      if (named || !value.isTensor() || value.tensor().type().elements() <= kFrozenElements) continue;
      options->shapes[name] = value.tensor().type().shape().dims();
      options->given.erase(name);
    }
  }

  Clock::time_point imported = start;
  const auto observer = options->observer;
  options->observer = [&](const StageEvent& event) -> Status {
    if (event.phase == "import") imported = Clock::now();
    return observer ? observer(event) : Status();
  };
  auto compiled = compile(*file, *options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (request.model.timing) std::cerr << timingTable(*compiled);

  OpenedProgram opened{.interfaces = compiled->interfaces};
  opened.loadSeconds = seconds(start, imported);
  if (!options->stopAfter.empty()) return opened;
  auto tensors = file->onnx ? collect(opened.interfaces.front(), all, needAll)
                            : readPlaceholders(opened.interfaces, request.inputs);
  if (!tensors.ok()) return failed(tensors);
  opened.given = *std::move(tensors);
  if (seen)
    if (const Status status = seen(*compiled); !status.ok()) return failed(status);
  auto executable = load(*std::move(compiled), *backend);
  if (!executable.ok()) return failed(executable);
  opened.executable = *std::move(executable);
  opened.compileSeconds = seconds(imported, Clock::now());
  return opened;
}

}  // namespace aglow::cli
