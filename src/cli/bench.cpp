// aglow bench: compiles a model, runs it again and again, and says how long it takes and what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "cli/cli.h"
#include "cli/profile.h"
#include "cli/random_inputs.h"
#include "cli/run_request.h"
#include "compile/text_files.h"

namespace aglow::cli {

namespace {

struct BenchOptions {
  RunRequest request;
  int runs = 0;  // 0: as many as fit into the time
  double seconds = 2;
  bool json = false, profile = false;
  std::string trace;
};

constexpr int kFewestRuns = 3;
constexpr int kProfiledRuns = 10;

// Something to be run again and again.
class Runner {
public:
  virtual ~Runner() = default;
  virtual Status run(RunObserver* observer) = 0;

  Result<double> seconds(RunObserver* observer = nullptr) {
    const auto start = std::chrono::steady_clock::now();
    AGLOW_OK(run(observer));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
};

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

// The network with its inputs and outputs in place: a run allocates nothing here.
class NetworkRunner : public Runner {
public:
  static Result<std::unique_ptr<NetworkRunner>> create(const OpenedNetwork& opened, size_t function) {
    const ModelValues values = filled(opened.network->functions()[function], opened.inputs);
    AGLOW_TRY(std::vector<Tensor> inputs, opened.network->bind(function, valuesIn(values)));
    return std::unique_ptr<NetworkRunner>(new NetworkRunner(*opened.network, function, std::move(inputs)));
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
  explicit SessionRunner(OpenedSession model) : model_(std::move(model)) {}

  // Random values for the inputs that were not given; an error when a size is open.
  Status fillInputs(const onnx::ImportOptions& sizes) {
    auto inputs = randomInputs(model_.session->graph(), model_.inputs, sizes, 1);
    if (!inputs.ok()) return inputs.diagnostics().errors().front();
    model_.inputs = *std::move(inputs);
    return {};
  }

  Status run(RunObserver*) override {
    const auto outputs = model_.session->run(model_.inputs);
    return outputs.ok() ? Status() : Status(outputs.diagnostics().errors().front());
  }
  const OpenedSession& model() const { return model_; }

private:
  OpenedSession model_;
};

// So many runs, or as many as fit into the time.
Result<std::vector<double>> measure(Runner& runner, int runs, int fewest, double seconds) {
  std::vector<double> times;
  double sum = 0;
  const auto enough = [&] {
    return runs > 0 ? std::ssize(times) >= runs : std::ssize(times) >= fewest && sum >= seconds;
  };
  while (!enough()) {
    AGLOW_TRY(const double time, runner.seconds());
    times.push_back(time);
    sum += time;
  }
  return times;
}

struct Statistics {
  double median = 0, best = 0, p90 = 0, mean = 0;
};

Statistics statisticsOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {.median = (times[(n - 1) / 2] + times[n / 2]) / 2,
          .best = times.front(),
          .p90 = times[(n * 9 + 9) / 10 - 1],  // nine tenths are not slower
          .mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(n)};
}

nlohmann::ordered_json report(const std::vector<double>& times, double loadSeconds, double compileSeconds) {
  const Statistics s = statisticsOf(times);
  return {{"median_ms", s.median * 1e3}, {"best_ms", s.best * 1e3},
          {"p90_ms", s.p90 * 1e3},       {"mean_ms", s.mean * 1e3},
          {"runs", times.size()},        {"load_s", loadSeconds},
          {"compile_s", compileSeconds}, {"peak_rss_mb", static_cast<double>(peakResidentBytes()) * 1e-6}};
}

void addFacts(nlohmann::ordered_json& report, const ExecutableFacts& facts, const std::string& backend) {
  report["arena_bytes"] = facts.arenaBytes;
  report["weights_bytes"] = facts.weightsBytes;
  if (facts.stateBytes > 0) report["state_bytes"] = facts.stateBytes;
  report["threads"] = facts.threads;
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

Result<std::vector<double>> measureWarm(Runner& runner, const BenchOptions& bench) {
  AGLOW_OK(measure(runner, (bench.runs + 9) / 10, 1, bench.seconds / 10));
  return measure(runner, bench.runs, kFewestRuns, bench.seconds);
}

Status print(const BenchOptions& bench, const nlohmann::ordered_json& result, const std::string& table) {
  return printOut(bench.json ? result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                             : text(result) + table);
}

bool isDynamic(const Diagnostics& diagnostics) {
  return std::all_of(diagnostics.errors().begin(), diagnostics.errors().end(),
                     [](const Error& error) { return error.code == Code::DynamicShape; });
}

Diagnosed<Unit> benchParts(const BenchOptions& bench) {
  const auto failed = [&](const auto& result) { return Diagnostics(result.error()).at(bench.request.model.model); };
  if (bench.profile || !bench.trace.empty())
    return failed(Status(Error{.code = Code::UnsupportedFeature,
                               .message = "shapes depend on values, and the model is compiled in parts; --profile and "
                                          "--trace are for models that are compiled whole"}));
  auto opened = openSession(bench.request);
  if (!opened.ok()) return opened.diagnostics();
  SessionRunner runner(*std::move(opened));
  const auto options = bench.request.model.parse();
  if (!options.ok()) return failed(options);
  if (const Status filled = runner.fillInputs(options->import); !filled.ok()) return failed(filled);
  const auto times = measureWarm(runner, bench);
  if (!times.ok()) return failed(times);
  nlohmann::ordered_json result = report(*times, runner.model().loadSeconds, runner.model().compileSeconds);
  result["parts"] = runner.model().session->parts();
  result["backend"] = bench.request.model.backend;
  if (const Status printed = print(bench, result, ""); !printed.ok()) return Diagnostics(printed.error());
  return Unit{};
}

Diagnosed<Unit> execute(const BenchOptions& bench) {
  const auto failed = [&](const auto& result) { return Diagnostics(result.error()).at(bench.request.model.model); };
  if (!bench.request.model.stopAfter.empty())
    return Error{.code = Code::Usage, .message = "--stop-after leaves nothing to measure"};
  if (bench.request.model.functions.size() > 1)
    return Error{.code = Code::Usage, .message = "bench measures one function: --function takes one name"};
  std::optional<Profile> profile;
  size_t function = 0;
  auto opened = openNetwork(bench.request, [&](const Compilation& compilation) -> Status {
    AGLOW_TRY(function, chooseFunction(compilation.functionNames(), {}));
    if (bench.profile || !bench.trace.empty()) profile.emplace(compilation.programs[function]);
    return {};
  });
  if (!opened.ok()) return isDynamic(opened.diagnostics()) ? benchParts(bench) : opened.diagnostics();
  const auto runner = NetworkRunner::create(*opened, function);
  if (!runner.ok()) return failed(runner);
  const auto times = measureWarm(**runner, bench);
  if (!times.ok()) return failed(times);
  nlohmann::ordered_json result = report(*times, opened->loadSeconds, opened->compileSeconds);
  addFacts(result, opened->network->facts(), bench.request.model.backend);

  std::string table;
  if (profile) {
    const int threads = opened->network->facts().threads;
    for (int i = 0; i < std::min<int>(kProfiledRuns, static_cast<int>(times->size())); ++i) {
      profile->startRun(threads);
      const auto time = (*runner)->seconds(&*profile);
      if (!time.ok()) return failed(time);
      profile->finishRun();
    }
    if (!bench.trace.empty())
      if (const Status written = writeTextFile(bench.trace, profile->trace()); !written.ok())
        return Diagnostics(written.error());
    if (bench.profile) {
      const MachinePeak peak = measurePeak(threads);
      if (bench.json) result["profile"] = profile->json(peak);
      table = "\n" + profile->table(peak);
    }
  }
  if (const Status printed = print(bench, result, table); !printed.ok()) return Diagnostics(printed.error());
  return Unit{};
}

}  // namespace

void addBench(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand("bench", "Compile a model in memory and measure how fast it runs");
  options->request.add(*command);
  auto* runs = command->add_option("--runs", options->runs, "Measure N runs")->type_name("N");
  runs->check(CLI::Range(1, 1000000000));
  command->add_option("--seconds,--duration", options->seconds, "Measure runs for S seconds, but at least 3 runs")
      ->type_name("S")
      ->capture_default_str()
      ->check(realFromZero(1e9))
      ->excludes(runs);
  command->add_flag("--json", options->json, "Output for programs");
  command->add_flag("--profile", options->profile, "Show what each instruction takes, against the machine's peak");
  command->add_option("--trace", options->trace, "Write one run for Perfetto or chrome://tracing")->type_name("FILE");
  command->footer(
      "Inputs that are not given are random, always the same ones. Runs that warm up come first and do not count.\n\n"
      "Examples:\n  aglow bench model.onnx --threads 1\n"
      "  aglow bench model.onnx --dim batch=8 --seconds 10 --json\n"
      "  aglow bench model.onnx --profile --trace run.json");
  command->callback([options, &chosen] {
    chosen = [options] {
      const Diagnosed<Unit> done = execute(*options);
      return done.ok() ? ExitCode::Ok : report(done.diagnostics());
    };
  });
}

}  // namespace aglow::cli
