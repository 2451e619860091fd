#include "cli/run_request.h"

#include <fmt/format.h>

#include <chrono>

#include "backends/package_cache.h"
#include "cli/cli.h"
#include "runtime/threads.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFrozenElements = 256;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Inputs of a text form are its placeholders.
Result<ModelValues> readPlaceholders(const std::vector<Interface>& interfaces,
                                     const std::vector<std::string>& assignments) {
  ModelValues values;
  for (const std::string& text : assignments) {
    AGLOW_TRY(const auto pair, splitAtEquals(text, "--input"));
    const Port* port = nullptr;
    for (const Interface& interface : interfaces)
      for (const Port& one : interface.inputs)
        if (one.name == pair.first) port = &one;
    if (port == nullptr)
      return Error{.code = Code::BadBinding, .message = fmt::format("the program has no input '{}'", pair.first)};
    if (values.contains(pair.first)) return givenTwice("--input", pair.first);
    AGLOW_TRY(const Tensor tensor, readNpy(pair.second, port->type.kind()));
    values[pair.first] = ModelValue::of(withScales(tensor, port->type));
  }
  return values;
}

}  // namespace

std::vector<Option> RunRequest::options() {
  std::vector<Option> options = model.options();
  addTo(options,
        {{.names = "--input,-i",
          .place = &inputs,
          .doc = "An input: NAME=FILE, or FILE where there is one; .npy, .npz, .json, .pb, .wav or an image; a "
                 "sequence is a "
                 "folder with 0.npy, 1.npy, …; an empty optional is @none",
          .type = "NAME=FILE",
          .reads = true},
         {.names = "--threads",
          .place = &threads,
          .doc = "Threads at most (default: one per processor)",
          .type = "N",
          .check = Between{1, kMaxThreads},
          .environment = "AGLOW_THREADS"},
         {"--cache", &cache,
          "Folder where compiled models are kept for the next time, or off (default: AGLOW_CACHE_DIR, or aglow in the "
          "user's cache)",
          "DIR"}});
  return options;
}

Option RunRequest::padding() {
  return {"--pad", &pad, "Fill inputs up with zeros to the next size of those that --dim NAME=1,4,16 prepares"};
}

Result<ParsedOptions> RunRequest::parse(const ModelOptions& words) const {
  return words.parse(onStage ? std::string() : cacheFolder(cache));
}

Result<BackendOptions> backendOptions(const RunRequest& request) {
  AGLOW_TRY(const int64_t limit, request.model.memoryLimitBytes());
  BackendOptions options{.memoryLimit = limit, .threads = request.threads, .contexts = request.contexts};
  for (const std::string& note : startThreads(options)) say("note: " + note + "\n");
  if (const auto refused = whyRefused(cacheFolder(request.cache))) say("note: " + *refused + "\n");
  return options;
}

namespace {

// Where values are known that --value would have to name otherwise, it says no more than --input.
Result<ModelValues> inputsOf(const RunRequest& request, const onnx::Graph& graph) {
  std::vector<std::string> assignments = request.inputs;
  assignments.insert(assignments.end(), request.model.values.begin(), request.model.values.end());
  AGLOW_TRY(const media::Preprocess images, request.media.parse());
  return readInputs(graph, assignments, "--input", images);
}

}  // namespace

Diagnosed<OpenedSession> openSession(const RunRequest& words) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const Clock::time_point start = Clock::now();
  RunRequest request = words;
  auto several = takeSeveralSizes(request.model.dims);
  if (!several.ok()) return failed(several);
  auto parsed = request.parse();
  if (!parsed.ok()) return failed(parsed);
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
  SessionOptions options{.import = std::move(parsed->import),
                         .compile = std::move(parsed->compile),
                         .backend = *std::move(backend),
                         .pad = request.pad};
  options.prepared.insert(several->begin(), several->end());
  if (request.pad && options.prepared.empty())
    return Error{.code = Code::Usage,
                 .message = "--pad needs sizes to fill up to",
                 .where = {},
                 .hint = "name them with --dim, e.g. --dim batch=1,4,16"};
  if (request.model.timing) options.compiled = [](const Compilation& compilation) { say(timingTable(compilation)); };
  const Clock::time_point loaded = Clock::now();
  auto session = Session::open(*std::move(file->onnx), std::move(options));
  if (!session.ok()) return Diagnostics(session.diagnostics()).at(request.model.model);
  opened.session = *std::move(session);
  opened.loadSeconds = seconds(start, loaded);
  opened.compileSeconds = seconds(loaded, Clock::now());
  return opened;
}

Diagnosed<OpenedNetwork> openNetwork(const RunRequest& request,
                                     const std::function<Status(const Compilation&)>& onCompiled) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const Clock::time_point start = Clock::now();
  auto options = request.parse();
  if (!options.ok()) return failed(options);
  auto backend = backendOptions(request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(request.model);
  if (!file.ok()) return failed(file);
  OpenedNetwork opened;
  onnx::ImportOptions& import = options->import;
  if (file->onnx) {
    auto given = inputsOf(request, file->onnx->graph);
    if (!given.ok()) return failed(given);
    opened.inputs = import.given = *std::move(given);
    // Large inputs decide no shapes; were one taken for a constant after all, the model would be computed when
    // compiling.
    for (const auto& [name, value] : opened.inputs) {
      const bool named = std::any_of(request.model.values.begin(), request.model.values.end(),
                                     [&](const std::string& text) { return text.starts_with(name + "="); });
      if (named || !value.isTensor() || value.tensor().type().elements() <= kFrozenElements) continue;
      import.shapes[name] = value.tensor().type().shape().dims();
      import.given.erase(name);
    }
    if (request.onesForOpenSizes) request.model.takeOnes(file->onnx->graph, import);
  }

  Clock::time_point imported = start;
  const auto observer = options->compile.observer;
  options->compile.observer = [&](const StageEvent& event) -> Status {
    if (event.phase == "import") imported = Clock::now();
    if (request.onStage) request.onStage(event);
    return observer ? observer(event) : Status();
  };
  auto compiled = compile(*file, *options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (request.model.timing) say(timingTable(*compiled));

  opened.loadSeconds = seconds(start, imported);
  if (!options->compile.stopAfter.empty()) return opened;
  if (!file->onnx) {
    auto values = readPlaceholders(compiled->interfaces, request.inputs);
    if (!values.ok()) return failed(values);
    opened.inputs = *std::move(values);
  }
  if (onCompiled)
    if (const Status status = onCompiled(*compiled); !status.ok()) return failed(status);
  auto network = Network::load(*std::move(compiled), *backend);
  if (!network.ok()) return failed(network);
  opened.network = *std::move(network);
  opened.compileSeconds = seconds(imported, Clock::now());
  return opened;
}

}  // namespace aglow::cli
