#include "cli/model_options.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "cli/cli.h"
#include "cli/open_sizes.h"
#include "cli/value_files.h"
#include "compile/packages.h"
#include "compile/phases.h"
#include "compile/text_files.h"
#include "dynamic/whole_model.h"
#include "graph/text.h"
#include "import/model_file.h"
#include "import/onnx/external_data.h"
#include "inst/text.h"
#include "quant/profile_file.h"
#include "quant/quantize.h"
#include "support/machine.h"
#include "support/sizes.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Result<int64_t> parseSize(std::string_view text, const std::string& where) {
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || value < 0)
    return usage(fmt::format("{}: '{}' is not a size", where, text), "sizes are whole numbers from 0 on");
  return value;
}

// "1x3x224x224"; "" and "scalar" are rank 0.
Result<std::vector<int64_t>> parseShape(const std::string& text, const std::string& where) {
  std::vector<int64_t> dims;
  if (text.empty() || text == "scalar") return dims;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find_first_of("x,", from), text.size());
    AGLOW_TRY(const int64_t dim, parseSize(std::string_view(text).substr(from, to - from), where));
    dims.push_back(dim);
    from = to + 1;
  }
  return dims;
}

// Prints and dumps what the options ask for, after passes and phases.
class Observer {
public:
  explicit Observer(const ModelOptions& options)
      : dump_(options.dump), printAfter_(options.printAfter.begin(), options.printAfter.end()) {}

  Status operator()(const StageEvent& event) {
    const std::string_view name = event.pass.empty() ? event.phase : event.pass;
    if (printAfter_.contains(std::string(name)))
      AGLOW_OK(printOut(fmt::format("# after {}{}\n{}", name, ofFunction(event), stageText(event))));
    if (dump_.empty() || !event.changed) return {};
    const std::string file =
        fmt::format("{}/{:03}-{}{}{}{}", dump_, ++number_, event.phase, event.pass.empty() ? "" : "-", event.pass,
                    event.graph == nullptr ? ".ir" : ".graph");
    return event.graph == nullptr ? writePrograms(file, event.programs) : writeModule(file, *event.graph);
  }

private:
  // Which of several functions a pass has run on.
  static std::string ofFunction(const StageEvent& event) {
    const size_t functions = event.graph == nullptr ? event.programs.size() : event.graph->functions().size();
    return functions > 1 && !event.function.empty() ? fmt::format(" of {}", event.function) : "";
  }
  static std::string stageText(const StageEvent& event) {
    return event.graph == nullptr ? print(event.programs) : print(*event.graph);
  }

  std::string dump_;
  std::set<std::string> printAfter_;
  int number_ = 0;
};

}  // namespace

// The names of a table's rows, the first of which is taken where none is named.
static std::string listed(const auto& rows) {
  std::string text;
  for (const auto& row : rows) text += fmt::format("{}{}", text.empty() ? "" : ", ", row.name);
  return text;
}

std::vector<Option> ModelOptions::options() {
  if (backend.empty()) backend = defaultBackend();
  static const std::string kBackends =
      fmt::format("One of: {}; opencl:PLATFORM/DEVICE, by numbers or parts of names, is one that aglow devices lists",
                  fmt::join(backendNames(), ", "));
  static const std::string kPhases = [] {
    std::vector<std::string_view> names;
    const PhaseList phases = knownPhases();
    for (const Phase& phase : phases) names.push_back(phase.name);
    return fmt::format("Begin at this phase: {}", fmt::join(names, ", "));
  }();
  static const std::string kCalibrations = fmt::format("How ranges are chosen: {}", listed(quant::calibrations()));
  static const std::string kPrecisions =
      fmt::format("What is computed with: float, as the model has it, or {}", listed(quant::precisions()));
  static const std::string kPrecisionNames = [] {
    std::string names = "float";
    for (const quant::Precision& row : quant::precisions()) names += fmt::format(",{}", row.name);
    return names;
  }();
  static const std::string kSchemas = fmt::format("How integers stand for values: {}", listed(quant::schemas()));
  std::vector<Option> options = {
      {.names = "model",
       .place = &model,
       .doc = "ONNX file, Caffe2 net, a text form (.graph, .ir) or a package (.aglow)",
       .required = true,
       .reads = true},
      {"--dim", &dims, "Size of a symbolic dimension: batch=4", "NAME=N"},
      {"--shape", &shapes, "Shape of an input: NAME=1x3x224x224", "NAME=DIMS"},
      {.names = "--backend", .place = &backend, .doc = kBackends, .showDefault = true, .environment = "AGLOW_BACKEND"},
      {.names = "--precision",
       .place = &precision,
       .doc = kPrecisions,
       .type = "KIND",
       .check = OneOf{kPrecisionNames},
       .showDefault = true},
      {.names = "--profile",
       .place = &profile,
       .doc = "What aglow profile found out, for --precision int8",
       .type = "FILE",
       .reads = true},
  };
  addTo(
      options,
      inGroup(
          "Model",
          {{.names = "--value",
            .place = &values,
            .doc = "Value of an input that decides shapes: NAME=FILE.npy",
            .type = "NAME=FILE",
            .reads = true},
           {.names = "--init",
            .place = &init,
            .doc = "The net that gives a Caffe2 net its weights",
            .type = "FILE",
            .reads = true},
           {.names = "--function",
            .place = &functions,
            .doc = "Functions of a text form to compile (default: all; where one is needed, the only one, or main)",
            .type = "NAME,…",
            .commas = true},
           {"--strict", &strict, "Refuse models that depart from the standard, even where their meaning is plain"},
           {"--follow-links", &followLinks,
            "Read weights that lie beside the model through links, also from elsewhere: caches of models have them so"},
           {"--verbose,-v", &verbose, "Say also what was mended in the model without consequences"},
           {"--memory-limit", &memoryLimit, "Refuse programs that need more, e.g. 512M (default: the machine's memory)",
            "BYTES"},
           {"--recompute", &recompute,
            "Compute values again instead of keeping them, until intermediate results fit into this, e.g. 64M",
            "BYTES"},
           {"--device-memory", &deviceMemory,
            "Use no more of the device's memory than this, e.g. 256M: weights that do not fit travel while others "
            "are used",
            "BYTES"},
           {"--f64", &f64,
            "How a device computes f64: own, as it can itself (default), or pairs, as two f32 each, with 48 of 53 bits "
            "and the range of f32",
            "HOW", OneOf{"own,pairs"}},
           {"--tune", &tune,
            "Measure which tiles the device is quickest with, once for each size; what was found is kept in the "
            "cache"},
           {"--tune-seconds", &tuneSeconds, "Spend no more on it, a tenth of it on each size (default: 60)", "S",
            Positive{}}}));
  addTo(options, inGroup("Integers", {{"--calibration", &calibration, kCalibrations, "NAME"},
                                      {"--schema", &schema, kSchemas, "NAME"},
                                      {.names = "--keep-float",
                                       .place = &keepFloat,
                                       .doc = "Nodes and operators that stay in floats",
                                       .type = "NAME,…",
                                       .commas = true}}));
  addTo(options, inGroup("Generated code",
                         {{"--target", &target.triple,
                           "Machine to generate code for, e.g. aarch64-linux-gnu (default: this one)", "TRIPLE"},
                          {"--cpu", &target.cpu, "Its processor, e.g. cortex-a76; native: this machine's", "NAME"},
                          {"--features", &target.features, "Instructions to use or to avoid: +avx2,-avx512f", "LIST"},
                          {.names = "-O",
                           .place = &target.optLevel,
                           .doc = "How hard to optimize the code: 0 to 3",
                           .type = "LEVEL",
                           .check = Between{0, 3},
                           .showDefault = true},
                          {"--code-model", &target.codeModel, "Reach of addresses in the code: small, medium or large",
                           "NAME", OneOf{"small,medium,large"}},
                          {"--opt-size", &target.optSize, "Prefer small code to fast code"}}));
  addTo(options,
        inGroup("Phases and passes",
                {{.names = "--disable",
                  .place = &disable,
                  .doc = "Switch a pass or rule off",
                  .type = "NAME",
                  .commas = true,
                  .environment = "AGLOW_DISABLE"},
                 {"--lanes", &lanes, "Lay channels and weights out for vectors of N f32 (0: as the backend has)", "N"},
                 {"--start-from", &startFrom, kPhases, "PHASE"},
                 {"--stop-after", &stopAfter, "End after this phase or pass", "NAME"},
                 {.names = "--print-after",
                  .place = &printAfter,
                  .doc = "Print the IR after this phase or pass",
                  .type = "NAME",
                  .commas = true},
                 {"--dump", &dump, "Write the IR after every step into this folder, numbered", "DIR"},
                 {"--fuse", &fuse, "Fuse chains of instructions, also for a backend that does not ask for it"},
                 {"--verify-each", &verifyEach, "Verify after every pass, the round trip through text included"},
                 {"--timing", &timing, "Print the time of every pass to stderr"}}));
  return options;
}

Result<std::pair<std::string, std::string>> splitAtEquals(const std::string& text, std::string_view option) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    return usage(fmt::format("{} '{}' is not of the form NAME=VALUE", option, text));
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Error givenTwice(std::string_view option, std::string_view name) {
  return usage(fmt::format("{}: '{}' is given twice", option, name));
}

Result<SeveralSizes> takeSeveralSizes(std::vector<std::string>& dims) {
  SeveralSizes several;
  std::vector<std::string> single;
  for (const std::string& text : dims) {
    AGLOW_TRY(const auto pair, splitAtEquals(text, "--dim"));
    if (pair.second.find(',') == std::string::npos) {
      single.push_back(text);
      continue;
    }
    std::vector<int64_t> sizes;
    for (size_t from = 0; from <= pair.second.size();) {
      const size_t to = std::min(pair.second.find(',', from), pair.second.size());
      AGLOW_TRY(const int64_t size, parseSize(std::string_view(pair.second).substr(from, to - from), "--dim " + text));
      sizes.push_back(size);
      from = to + 1;
    }
    several.emplace_back(pair.first, std::move(sizes));
  }
  dims = std::move(single);
  return several;
}

Result<int64_t> parseBytes(std::string digits, std::string_view option) {
  constexpr std::string_view kUnits = "KMG";
  int64_t unit = 1;
  if (const size_t power = digits.empty() ? kUnits.npos : kUnits.find(digits.back()); power != kUnits.npos) {
    unit = int64_t{1} << (10 * (power + 1));
    digits.pop_back();
  }
  AGLOW_TRY(const int64_t count, parseSize(digits, std::string(option)));
  const std::optional<int64_t> bytes = checkedMul(count, unit);
  if (!bytes) return usage(fmt::format("{} is too large", option));
  return *bytes;
}

Result<ParsedOptions> ModelOptions::parse(const std::string& cache) const {
  if (isWhole(model) && !(shapes.empty() && dims.empty() && values.empty() && init.empty()))
    return usage(
        "--shape, --dim, --value and --init are for model files; a text form or package has its sizes and weights");
  ParsedOptions parsed;
  CompileOptions& options = parsed.compile;
  options.backend = backend;
  options.functions = functions;
  options.target = target;
  options.lanes = lanes;
  options.startFrom = startFrom;
  options.stopAfter = stopAfter;
  options.fuse = fuse;
  if (tune || tuneSeconds) {
    options.tune.seconds = tuneSeconds.value_or(device::TuneOptions::kSeconds);
    options.tune.tell = [](const std::string& line) { say("tune: " + line + "\n"); };
  }
  options.f64Pairs = f64 == "pairs";
  options.verifyEach = verifyEach;
  if (!recompute.empty()) {
    AGLOW_TRY(options.recompute, parseBytes(recompute, "--recompute"));
    if (options.recompute < 1) return usage("--recompute: expected a number of bytes, at least 1");
  }
  if (!deviceMemory.empty()) {
    if (boundsMemory(backend))
      return usage(fmt::format("--device-memory: --backend '{}' says already how much memory may be used", backend));
    AGLOW_TRY(const int64_t bytes, parseBytes(deviceMemory, "--device-memory"));
    options.backend = fmt::format("{}@{}", backend.empty() ? defaultBackend() : backend, bytes);
  }
  if (dump.empty() && printAfter.empty() && !timing) options.cache = cache;
  parsed.import.tolerance = tolerance();
  parsed.import.followLinks = followLinks;
  options.disabled.insert(disable.begin(), disable.end());
  for (const std::string& text : shapes) {
    AGLOW_TRY(const auto pair, splitAtEquals(text, "--shape"));
    if (parsed.import.shapes.contains(pair.first)) return givenTwice("--shape", pair.first);
    AGLOW_TRY(parsed.import.shapes[pair.first], parseShape(pair.second, "--shape " + text));
  }
  for (const std::string& text : dims) {
    AGLOW_TRY(const auto pair, splitAtEquals(text, "--dim"));
    if (parsed.import.dims.contains(pair.first)) return givenTwice("--dim", pair.first);
    AGLOW_TRY(parsed.import.dims[pair.first], parseSize(pair.second, "--dim " + text));
  }
  AGLOW_TRY(options.quantize, quantization());
  if (!isPackage(model)) AGLOW_OK(checkOptions(options));  // it has no phases, and needs no backend
  if (const Result<int64_t> limit = memoryLimitBytes(); !limit.ok()) return limit.error();
  for (const std::string& name : printAfter) AGLOW_OK(checkStage(name));
  if (!dump.empty()) {
    std::error_code fault;
    std::filesystem::create_directories(dump, fault);
    if (fault)
      return Error{.code = Code::FileWrite, .message = "cannot create the folder: " + fault.message(), .where = dump};
  }
  if (!dump.empty() || !printAfter.empty()) options.observer = Observer(*this);
  return parsed;
}

Result<std::shared_ptr<const quant::Request>> ModelOptions::quantization() const {
  if (precision == "float") {
    if (profile.empty() && calibration.empty() && schema.empty() && keepFloat.empty())
      return std::shared_ptr<const quant::Request>();
    return usage("--profile, --calibration, --schema and --keep-float are for --precision int8");
  }
  if (isPackage(model)) return usage("a package is compiled: its precision is what it was compiled with");
  if (precision != "int8") {
    if (!profile.empty() || !calibration.empty() || !schema.empty())
      return usage("--profile, --calibration and --schema are for --precision int8");
    return quant::requestOf(precision, keepFloat);
  }
  if (profile.empty())
    return usage("--precision int8 needs a profile", "make one with `aglow profile`, and name it with --profile");
  AGLOW_TRY(quant::Profile ranges, quant::readProfile(profile));
  return quant::requestOf(std::move(ranges), calibration, schema, keepFloat);
}

onnx::Tolerance ModelOptions::tolerance() const {
  const auto warn = [path = model, all = verbose, said = warned](const onnx::Departure& departure) {
    if (departure.silent && !all) return;
    const std::string text = departure.text(path);
    if (said->insert(text).second) say(text + "\n");
  };
  return {.strict = strict, .warn = warn};
}

void ModelOptions::takeOnes(const onnx::Graph& graph, onnx::ImportOptions& import) const {
  const std::vector<std::string> taken = cli::takeOnes(graph, import);
  if (taken.empty() || !warned->insert("open sizes").second) return;
  say(fmt::format("note: open sizes are taken as 1: {}; --dim and --shape give others\n", fmt::join(taken, ", ")));
}

Result<int64_t> ModelOptions::memoryLimitBytes() const {
  if (memoryLimit.empty()) return machineMemory();
  return parseBytes(memoryLimit, "--memory-limit");
}

// The inputs that have to be given.
static std::vector<std::string_view> requiredInputs(const onnx::Graph& graph) {
  std::vector<std::string_view> names;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (std::none_of(graph.initializers.begin(), graph.initializers.end(),
                     [&](const auto& tensor) { return tensor.name == info.name; }))
      names.push_back(info.name);
  return names;
}

Result<std::map<std::string, ModelValue>> readInputs(const onnx::Graph& graph,
                                                     const std::vector<std::string>& assignments,
                                                     std::string_view option, const media::Preprocess& images) {
  std::map<std::string, ModelValue> given;
  std::vector<std::string_view> names;
  for (const onnx::ValueInfo& info : graph.inputs) names.push_back(info.name);
  const std::vector<std::string_view> required = requiredInputs(graph);
  for (const std::string& text : assignments) {
    const bool only = required.size() == 1 && text.find('=') == std::string::npos;
    AGLOW_TRY(const auto pair, splitAtEquals(only ? fmt::format("{}={}", required.front(), text) : text, option));
    const auto& [name, file] = pair;
    const auto info =
        std::find_if(graph.inputs.begin(), graph.inputs.end(), [&](const auto& i) { return i.name == name; });
    if (info == graph.inputs.end()) {
      std::string hint = didYouMean(name, names);
      if (hint.empty()) hint = fmt::format("its inputs are: {}", fmt::join(names, ", "));
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("the model has no input '{}'", name),
                   .where = {},
                   .hint = hint};
    }
    if (given.contains(name)) return givenTwice(option, name);
    auto value = readValue(file, info->type, name, images);
    if (!value.ok()) return std::move(value).error().at(fmt::format("input '{}'", name));
    given[name] = *std::move(value);
  }
  return given;
}

Result<ModelFile> openModel(const ModelOptions& options) {
  if (isWhole(options.model)) return ModelFile{options.model, std::nullopt};
  AGLOW_TRY(onnx::Model model, readModelFile(options.model, options.init));
  if (options.followLinks && model.external) model.external->followLinks();
  AGLOW_OK(checkDims(model.graph, options.dims));
  return ModelFile{options.model, std::move(model)};
}

Diagnosed<Compilation> compile(const ModelFile& file, const ParsedOptions& options) {
  if (!file.onnx) return compileTextFile(file.path, options.compile);
  Diagnosed<Compilation> compiled = compileModel(*file.onnx, options.compile, options.import);
  if (!compiled.ok()) return Diagnostics(compiled.diagnostics()).at(file.path);
  return compiled;
}

std::string timingTable(const Compilation& compilation) {
  std::string out = fmt::format("{:<16} {:<28} {:>5} {:>8} {:>10}\n", "phase", "pass", "runs", "changed", "ms");
  for (const PassTiming& t : compilation.timings)
    out += fmt::format("{:<16} {:<28} {:>5} {:>8} {:>10.3f}\n", t.phase, t.pass, t.runs, t.changes, t.seconds * 1e3);
  for (const auto& [rule, count] : compilation.ruleCounts) out += fmt::format("  {} x{}\n", rule, count);
  return out;
}

}  // namespace aglow::cli
