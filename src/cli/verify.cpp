// aglow verify: compares what a model gives with files, with onnxruntime, or with another backend.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/bisect.h"
#include "cli/cli.h"
#include "cli/comparison.h"
#include "cli/data_sets.h"
#include "cli/engines.h"
#include "cli/random_inputs.h"
#include "cli/standard_streams.h"
#include "compile/packages.h"
#include "compile/text_files.h"
#include "quant/request.h"

namespace aglow::cli {

namespace {

struct VerifyOptions {
  RunRequest request;
  std::string against;
  Tolerances tolerances;
  uint64_t seed = 1;
  bool bisect = false, json = false;
};

constexpr std::string_view kOnnxruntime = "onnxruntime";

// One run of the model: on the inputs of a data set, or on given and random ones.
struct Case {
  std::string name;
  ModelValues inputs;
  std::vector<std::optional<ModelValue>> expected;  // none where an engine has to tell
};

std::vector<std::string> splitAtCommas(const std::string& text) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    words.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

class Verification {
public:
  explicit Verification(const VerifyOptions& options) : options_(options) {}

  Diagnosed<Unit> run() {
    if (auto prepared = prepare(); !prepared.ok()) return Diagnostics(prepared.error());
    if (byFiles_ && !onnxruntime()) {
      auto folders = listDataSets(options_.against);
      if (!folders.ok()) return folders.error();
      for (const std::string& folder : *folders)
        if (auto done = verifyFolder(folder); !done.ok()) return done;
    } else {
      auto inputs = randomInputs(model_.graph, given_, sizes_, options_.seed);
      if (!inputs.ok()) return Diagnostics(inputs.diagnostics()).at(path());
      if (auto done = verify({.name = {}, .inputs = *std::move(inputs), .expected = {}}); !done.ok()) return done;
    }
    return finish();
  }

private:
  const std::string& path() const { return options_.request.model.model; }
  bool onnxruntime() const { return options_.against == kOnnxruntime; }

  // What is said of a device (how it is tuned, how it computes f64, its memory) is not said of those it is compared
  // with. Where no device is named, it is for all that are, which say what they do not take.
  RunRequest requestOf(const std::string& backend, bool named) const {
    RunRequest request = options_.request;
    ModelOptions& model = request.model;
    if (!named || (hasDevice_ && !isDevice(backend))) {
      model.tune = false;
      model.tuneSeconds = {};
      model.f64.clear();
    }
    if (!named || (hasDevice_ && backend.starts_with("cpu"))) model.deviceMemory.clear();
    return request;
  }
  static bool isDevice(const std::string& backend) { return backend.starts_with("opencl"); }

  Result<std::unique_ptr<Engine>> engineOf(const std::string& backend, bool named = true) const {
    const RunRequest request = requestOf(backend, named);
    return isPackage(path()) ? packageEngine(request, backend) : backendEngine(model_, request, backend);
  }

  Status checkPackage() const {
    if (!onnxruntime() && !options_.bisect) return {};
    return Error{.code = Code::Usage,
                 .message = "a package holds no nodes of a model that onnxruntime could run, or that could be compared",
                 .where = {},
                 .hint = "verify the model that it was made of"};
  }

  Status prepare() {
    if (isTextForm(path()))
      return Error{.code = Code::Usage, .message = "verify takes ONNX files; a text form has nothing to compare with"};
    if (!options_.request.model.stopAfter.empty())
      return Error{.code = Code::Usage, .message = "--stop-after leaves nothing to compare"};
    std::vector<std::string> backends = splitAtCommas(options_.request.model.backend);
    byFiles_ = !options_.against.empty();
    hasDevice_ = std::any_of(backends.begin(), backends.end(), isDevice);
    const bool implied = byFiles_ || backends.size() == 1;
    std::string reference(kReferenceBackend);
    if (!byFiles_) {
      // The last backend is the one to compare with; of a single one that is the reference.
      if (implied) backends.push_back(reference);
      reference = backends.back();
      backends.pop_back();
      if (backends.front() == reference)
        return Error{.code = Code::Usage,
                     .message = fmt::format("there is nothing to compare {} with", reference),
                     .where = {},
                     .hint = "--against DIR, --against onnxruntime, or two backends: --backend cpu,interpreter"};
    }
    if (isPackage(path())) {
      AGLOW_OK(checkPackage());
      AGLOW_TRY(model_.graph, packageGraph(requestOf(std::string(kReferenceBackend), false)));
    } else {
      AGLOW_TRY(ModelFile file, openModel(options_.request.model));
      model_ = *std::move(file.onnx);
    }
    AGLOW_TRY(const media::Preprocess images, options_.request.media.parse());
    AGLOW_TRY(given_, readInputs(model_.graph, options_.request.inputs, "--input", images));
    for (const std::string& backend : backends) {
      AGLOW_TRY(std::unique_ptr<Engine> engine, engineOf(backend));
      tested_.push_back(std::move(engine));
    }
    ModelOptions sizes = requestOf(reference, false).model;
    sizes.backend = kReferenceBackend;
    AGLOW_TRY(ParsedOptions parsed, sizes.parse());
    tolerances_ = options_.tolerances;
    if (parsed.compile.quantize) tolerances_.steps = parsed.compile.quantize->precision->steps;
    sizes_ = std::move(parsed.import);
    if (onnxruntime()) {
      AGLOW_TRY(reference_, onnxruntimeEngine(path(), model_));
    } else if (!byFiles_ || options_.bisect) {
      // Files hold no values of nodes: those are the reference backend's.
      AGLOW_TRY(reference_, engineOf(reference, !implied));
    }
    for (const onnx::ValueInfo& info : model_.graph.outputs) outputs_.push_back(info.name);
    return {};
  }

  Diagnosed<Unit> verifyFolder(const std::string& folder) {
    auto set = readDataSet(folder, model_.graph);
    if (!set.ok()) return set.error();
    ModelValues known = given_;
    known.merge(set->inputs);
    auto inputs = randomInputs(model_.graph, known, sizes_, options_.seed);
    if (!inputs.ok()) return Diagnostics(inputs.diagnostics()).at(folder);
    return verify({.name = set->name, .inputs = *std::move(inputs), .expected = std::move(set->outputs)});
  }

  Diagnosed<Unit> verify(Case one) {
    const std::string against = one.expected.empty() ? reference_->name() : "files";
    if (one.expected.empty()) {
      auto values = reference_->values(outputs_, one.inputs);
      if (!values.ok()) return Diagnostics(values.diagnostics()).at(path()).at(reference_->name());
      for (ModelValue& value : *values) one.expected.emplace_back(std::move(value));
    }
    for (const std::unique_ptr<Engine>& engine : tested_) {
      auto values = engine->values(outputs_, one.inputs);
      if (!values.ok()) return Diagnostics(values.diagnostics()).at(path()).at(engine->name());
      std::vector<ComparisonRow> rows;
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (one.expected[i])
          for (ComparisonRow& row : compareValues(outputs_[i], (*values)[i], *one.expected[i], tolerances_))
            rows.push_back(std::move(row));
      note(one, *engine, against, rows);
    }
    return Unit{};
  }

  void note(const Case& one, Engine& engine, const std::string& against, const std::vector<ComparisonRow>& rows) {
    const std::string title =
        fmt::format("{}{}{} against {}", one.name, one.name.empty() ? "" : ": ", engine.name(), against);
    text_ += (text_.empty() ? "" : "\n") + title + "\n" + tableText(rows);
    nlohmann::json json = {{"name", one.name}, {"engine", engine.name()}, {"against", against}};
    for (const ComparisonRow& row : rows) {
      json["outputs"].push_back(toJson(row));
      ++compared_;
      differing_ += row.agrees() ? 0 : 1;
    }
    if (options_.bisect && !allAgree(rows) && !bisected_) {
      bisected_ = true;
      const Bisection found = cli::bisect(model_, engine, *reference_, one.inputs, tolerances_);
      text_ += "\n" + toText(found, engine, *reference_);
      if (!found.found && against == "files")
        text_ += fmt::format("  what the files expect is another meaning of an operator than {} and {} have\n",
                             engine.name(), reference_->name());
      else if (!found.found)
        text_ += "  the outputs differ only where these values need not be kept: look at fused nodes, with --disable\n";
      json["bisect"] = toJson(found);
    }
    json_["cases"].push_back(std::move(json));
  }

  Diagnosed<Unit> finish() {
    if (compared_ == 0)
      return Error{.code = Code::FileRead, .message = "no output is there to compare with", .where = options_.against};
    json_["model"] = withStdinNamed(path());
    json_["agrees"] = differing_ == 0;
    const Status printed = options_.json ? printJson(json_) : printOut(text_);
    if (!printed.ok()) return printed.error();
    if (differing_ == 0) return Unit{};
    return Error{.code = Code::OutputMismatch,
                 .message = fmt::format("{} of {} outputs differ from what is expected", differing_, compared_),
                 .where = path(),
                 .hint = options_.bisect ? "" : "--bisect finds the first node that differs"};
  }

  const VerifyOptions& options_;
  onnx::Model model_;
  ModelValues given_;
  onnx::ImportOptions sizes_;
  std::vector<std::string> outputs_;
  std::vector<std::unique_ptr<Engine>> tested_;
  std::unique_ptr<Engine> reference_;
  Tolerances tolerances_;
  bool byFiles_ = false, hasDevice_ = false, bisected_ = false;
  size_t compared_ = 0, differing_ = 0;
  std::string text_;
  nlohmann::json json_;
};

}  // namespace

Command verifyCommand() {
  auto options = std::make_shared<VerifyOptions>();
  Command command{.name = "verify",
                  .doc = "Compare what a model gives with what is expected",
                  .options = options->request.options(),
                  .footer =
                      "Examples:\n"
                      "  aglow verify model.onnx --against test_data_set_0\n"
                      "  aglow verify model.onnx --against onnxruntime --dim batch=2 --bisect\n"
                      "  aglow verify model.onnx --backend cpu,interpreter\n"
                      "  aglow verify model.onnx --backend cpu:O0,cpu:O3 --input x=x.npy --atol 0 --rtol 0",
                  .action = [options] { return finish(Verification(*options).run()); }};
  addTo(command.options, options->request.media.options());
  constexpr UpTo kAnyTolerance{std::numeric_limits<double>::max()};
  addTo(command.options,
        {{"--against", &options->against,
          "A folder (test_data_set_*/, input_*.pb and output_*.pb, or 0.npy, …), or onnxruntime; without it, the last "
          "of several backends, or the interpreter",
          "DIR"},
         {.names = "--atol",
          .place = &options->tolerances.atol,
          .doc = "Absolute tolerance (default: by the kind of element)",
          .check = kAnyTolerance},
         {.names = "--rtol",
          .place = &options->tolerances.rtol,
          .doc = "Relative tolerance (default: by the kind of element)",
          .check = kAnyTolerance},
         {.names = "--seed",
          .place = &options->seed,
          .doc = "Of the random values of inputs that are not given",
          .type = "N",
          .showDefault = true},
         {"--bisect", &options->bisect, "Find the first node whose value differs"},
         {"--json", &options->json, "For programs"}});
  return command;
}

}  // namespace aglow::cli
