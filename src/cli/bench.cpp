// aglow bench: compiles a model, runs it again and again, and says how long it takes and what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/opencl/opencl.h"
#include "backends/opencl/peak.h"
#include "cli/cli.h"
#include "cli/measure.h"
#include "cli/model_page.h"
#include "cli/profile.h"
#include "cli/random_inputs.h"
#include "cli/run_request.h"
#include "cli/transfers.h"
#include "compile/text_files.h"

namespace aglow::cli {

namespace {

struct BenchOptions {
  RunRequest request;
  int runs = 0;     // 0: as many as fit into the time
  int warmup = -1;  // the same; -1: a tenth of what is measured
  int streams = 1;
  double seconds = 2;
  bool json = false, instructions = false, quiet = false;
  std::string trace, html;

  bool profiles() const { return instructions || !trace.empty() || !html.empty(); }
};

constexpr int kFewestRuns = 3;
constexpr int kProfiledRuns = 10;

using Runners = std::vector<std::unique_ptr<Runner>>;

// Values for all inputs of a function: those given, and random ones.
ModelValues filled(const Interface& function, ModelValues values) {
  Rng rng(1);
  for (const Port& port : function.inputs) {
    if (values.contains(port.name)) continue;
    ModelValue& value = values[port.name];
    value.isSequence = port.kind == Port::Kind::Sequence;
    if (port.kind == Port::Kind::Tensor) value.tensors.push_back(randomTensor(port.type, rng));
    for (const Port& item : port.items) value.tensors.push_back(randomTensor(item.type, rng));
  }
  return values;
}

// The network with inputs and outputs in place: a run allocates nothing here.
class NetworkRunner : public Runner {
public:
  // One for each stream, all with the same inputs and with outputs of their own.
  static Result<Runners> create(const OpenedNetwork& opened, size_t function, int streams) {
    const ModelValues values = filled(opened.network->functions()[function], opened.inputs);
    AGLOW_TRY(const std::vector<Tensor> inputs, opened.network->bind(function, valuesIn(values)));
    Runners runners;
    for (int i = 0; i < streams; ++i)
      runners.push_back(std::unique_ptr<Runner>(new NetworkRunner(*opened.network, function, inputs)));
    return runners;
  }

  Status run(RunObserver* observer) override { return network_.run(function_, in_, out_, observer); }

private:
  NetworkRunner(Network& network, size_t function, std::vector<Tensor> inputs)
      : network_(network), function_(function), inputs_(std::move(inputs)) {
    for (const Binding& binding : network.outputs(function)) outputs_.emplace_back(binding.type);
    for (const Tensor& tensor : inputs_) in_.push_back(tensor.ref());
    for (Tensor& tensor : outputs_) out_.push_back(tensor.ref());
  }

  Network& network_;
  size_t function_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<TensorRef> in_, out_;
};

// A model that is compiled in parts, because shapes depend on values.
class SessionRunner : public Runner {
public:
  explicit SessionRunner(const OpenedSession& model) : model_(model) {}

  Status run(RunObserver*) override {
    const auto outputs = model_.session->run(model_.inputs);
    return outputs.ok() ? Status() : Status(outputs.diagnostics().errors().front());
  }

private:
  const OpenedSession& model_;
};

nlohmann::ordered_json report(const Measured& measured, const BenchOptions& bench, double loadSeconds,
                              double compileSeconds, int64_t readyBytes) {
  const Statistics s = statisticsOf(measured.times);
  const auto runs = static_cast<double>(measured.times.size());
  nlohmann::ordered_json result = {{"median_ms", s.median * 1e3},  {"best_ms", s.best * 1e3}, {"mean_ms", s.mean * 1e3},
                                   {"p50_ms", s.p50 * 1e3},        {"p90_ms", s.p90 * 1e3},   {"p99_ms", s.p99 * 1e3},
                                   {"runs", measured.times.size()}};
  result["runs_per_s"] = runs / measured.seconds;
  if (bench.streams > 1) result["streams"] = bench.streams;
  result["load_s"] = loadSeconds;
  result["compile_s"] = compileSeconds;
  result["ready_mb"] = static_cast<double>(readyBytes) * 1e-6;
  result["peak_rss_mb"] = static_cast<double>(peakResidentBytes()) * 1e-6;
  return result;
}

void addFacts(nlohmann::ordered_json& report, const ExecutableFacts& facts, const std::string& backend) {
  report["arena_bytes"] = facts.arenaBytes;
  report["weights_bytes"] = facts.weightsBytes;
  if (facts.stateBytes > 0) report["state_bytes"] = facts.stateBytes;
  report["threads"] = facts.threads;
  report["contexts"] = facts.contexts;
  report["backend"] = backend;
  report["target"] = facts.target;
  report["cached"] = facts.cached;
}

std::string text(const nlohmann::ordered_json& report) {
  std::string out;
  for (const auto& [key, value] : report.items())
    out += fmt::format("{:<14} {}\n", key,
                       value.is_number_float() ? fmt::format("{:.4f}", value.get<double>())
                       : value.is_string()     ? value.get<std::string>()
                                               : value.dump());
  return out;
}

Result<Measured> measureWarm(const Runners& runners, const BenchOptions& bench) {
  if (bench.warmup > 0) AGLOW_OK(measure(runners, bench.warmup, 1, 0));
  if (bench.warmup < 0) AGLOW_OK(measure(runners, (bench.runs + 9) / 10, 1, bench.seconds / 10));
  return measure(runners, bench.runs, kFewestRuns, bench.seconds);
}

Status print(const BenchOptions& bench, const nlohmann::ordered_json& result, const std::string& table) {
  return bench.json ? printJson(result) : printOut(text(result) + table);
}

bool isDynamic(const Diagnostics& diagnostics) {
  return std::all_of(diagnostics.errors().begin(), diagnostics.errors().end(),
                     [](const Error& error) { return error.code == Code::DynamicShape; });
}

Diagnosed<Unit> benchParts(const BenchOptions& bench) {
  const auto failed = [&](const auto& result) { return Diagnostics(result.error()).at(bench.request.model.model); };
  if (bench.profiles())
    return failed(
        Status(Error{.code = Code::UnsupportedFeature,
                     .message = "shapes depend on values, and the model is compiled in parts; --instructions, "
                                "--trace and --html are for models that are compiled whole"}));
  auto opened = openSession(bench.request);
  if (!opened.ok()) return opened.diagnostics();
  const int64_t ready = privateBytes();
  auto options = bench.request.parse();
  if (!options.ok()) return failed(options);
  // Random values for the inputs that were not given.
  options->import.given = opened->inputs;
  bench.request.model.takeOnes(opened->session->graph(), options->import);
  auto inputs = randomInputs(opened->session->graph(), opened->inputs, options->import, 1);
  if (!inputs.ok()) return Diagnostics(inputs.diagnostics().errors().front()).at(bench.request.model.model);
  opened->inputs = *std::move(inputs);
  Runners runners;
  for (int i = 0; i < bench.streams; ++i) runners.push_back(std::make_unique<SessionRunner>(*opened));
  const auto measured = measureWarm(runners, bench);
  if (!measured.ok()) return failed(measured);
  nlohmann::ordered_json result = report(*measured, bench, opened->loadSeconds, opened->compileSeconds, ready);
  result["parts"] = opened->session->parts();
  result["backend"] = bench.request.model.backend;
  if (const Status printed = print(bench, result, ""); !printed.ok()) return Diagnostics(printed.error());
  return Unit{};
}

Diagnosed<Unit> execute(BenchOptions bench) {
  const auto failed = [&](const auto& result) { return Diagnostics(result.error()).at(bench.request.model.model); };
  if (!bench.request.model.stopAfter.empty())
    return Error{.code = Code::Usage, .message = "--stop-after leaves nothing to measure"};
  if (bench.request.model.functions.size() > 1)
    return Error{.code = Code::Usage, .message = "bench measures one function: --function takes one name"};
  if (bench.streams > 1 && bench.profiles())
    return Error{.code = Code::Usage,
                 .message = "--instructions, --trace and --html show one run at a time, without --streams"};
  std::optional<ModelPage> page;
  if (!bench.html.empty()) {
    page.emplace();
    bench.request.onStage = [&](const StageEvent& event) { page->observe(event); };
  }
  std::optional<Profile> profile;
  size_t function = 0;
  std::shared_ptr<const OpenClBackend> device;  // that it runs on, if any
  auto opened = openNetwork(bench.request, [&](const Compilation& compilation) -> Status {
    device = std::dynamic_pointer_cast<const OpenClBackend>(compilation.backend);
    AGLOW_TRY(function, chooseFunction(compilation.functionNames(), {}));
    if (bench.profiles())
      profile.emplace(compilation.programs[function], timelineOf(compilation.programs[function], *compilation.backend));
    if (page) page->add(compilation);
    return {};
  });
  if (!opened.ok()) return isDynamic(opened.diagnostics()) ? benchParts(bench) : opened.diagnostics();
  const int64_t ready = privateBytes();
  const auto runners = NetworkRunner::create(*opened, function, bench.streams);
  if (!runners.ok()) return failed(runners);
  const auto measured = measureWarm(*runners, bench);
  if (!measured.ok()) return failed(measured);
  nlohmann::ordered_json result = report(*measured, bench, opened->loadSeconds, opened->compileSeconds, ready);
  addFacts(result, opened->network->facts(), bench.request.model.backend);

  std::string table;
  if (profile) {
    const int threads = opened->network->facts().threads;
    for (int i = 0; i < std::min<int>(kProfiledRuns, static_cast<int>(measured->times.size())); ++i) {
      profile->startRun(threads);
      const auto time = runners->front()->seconds(&*profile);
      if (!time.ok()) return failed(time);
      profile->finishRun();
    }
    if (!bench.trace.empty())
      if (const Status written = writeOut(bench.trace, profile->trace()); !written.ok())
        return Diagnostics(written.error());
    if (bench.instructions || page) {
      const auto peak =
          device == nullptr ? Result(measurePeak(threads)) : opencl::measuredPeak(device->device(), device->cache());
      if (!peak.ok()) return failed(peak);
      if (page) {
        page->add(function, profile->json(*peak), result);
        if (const Status written = std::move(*page).write(bench.html, bench.request.model.model); !written.ok())
          return Diagnostics(written.error());
      }
      if (bench.instructions && bench.json) result["profile"] = profile->json(*peak);
      if (bench.instructions) table = "\n" + profile->table(*peak);
    }
  }
  if (bench.quiet) return Unit{};
  if (const Status printed = print(bench, result, table); !printed.ok()) return Diagnostics(printed.error());
  return Unit{};
}

}  // namespace

Diagnosed<Unit> writeModelPage(const ModelOptions& model, const std::string& file) {
  constexpr double kSeconds = 0.5;
  BenchOptions bench{.request = {.model = model}, .seconds = kSeconds, .quiet = true, .html = file};
  bench.request.onesForOpenSizes = true;
  return execute(std::move(bench));
}

Command benchCommand() {
  auto options = std::make_shared<BenchOptions>();
  options->request.onesForOpenSizes = true;
  Command command{
      .name = "bench",
      .doc = "Compile a model in memory and measure how fast it runs",
      .options = options->request.options(),
      .footer =
          "Inputs that are not given are random, always the same ones; sizes that are open are taken as 1. Runs "
          "that warm up come first and do not count.\n\n"
          "Examples:\n  aglow bench model.onnx --threads 1\n"
          "  aglow bench model.onnx --dim batch=8 --seconds 10 --json\n"
          "  aglow bench model.onnx --streams 8\n"
          "  aglow bench model.onnx --instructions --trace run.json --html run.html",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options, options->request.media.options());
  addTo(command.options,
        {options->request.padding(),
         {"--runs", &options->runs, "Measure N runs", "N", Between{1, 1000000000}},
         {.names = "--seconds,--duration",
          .place = &options->seconds,
          .doc = "Measure runs for S seconds, but at least 3 runs",
          .type = "S",
          .check = UpTo{1e9},
          .showDefault = true,
          .excludes = "--runs"},
         {"--warmup", &options->warmup, "Runs before those that are measured (default: a tenth of them)", "N",
          Between{0, 1000000000}},
         {"--streams", &options->streams,
          "Keep N runs under way at a time, from as many threads, and measure how many there are a second", "N",
          Between{1, kMaxContexts}},
         {"--contexts", &options->request.contexts, "Runs side by side at most (default: two per processor)", "N",
          Between{1, kMaxContexts}},
         {"--json", &options->json, "Output for programs"},
         {"--instructions", &options->instructions, "Show what each instruction takes, against the machine's peak"},
         {"--trace", &options->trace, "Write one run for Perfetto or chrome://tracing", "FILE"},
         {"--html", &options->html, "Write a page: graph, stages, memory, and where the time goes", "FILE"}});
  return command;
}

}  // namespace aglow::cli
