// aglow reduce: a small part of a model that fails as the whole does, and the passes without which it does not.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli.h"
#include "cli/engines.h"
#include "cli/random_inputs.h"
#include "cli/reducer.h"
#include "import/onnx/model_writer.h"
#include "support/process.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

struct ReduceOptions {
  RunRequest request;
  std::string test, output = "reduced.onnx", backends = "cpu,interpreter";
  bool json = false;
};

// How a test ended: its exit code, and the code of the error that it told.
struct Outcome {
  int code = 0;
  std::string error;

  bool operator==(const Outcome&) const = default;
  std::string text() const { return fmt::format("exit code {}{}{}", code, error.empty() ? "" : ", ", error); }
};

class Tester {
public:
  Tester(const ReduceOptions& options, TemporaryFolder folder) : options_(options), folder_(std::move(folder)) {}

  size_t runs() const { return runs_; }

  Result<Outcome> run(const std::string& file, const std::string& without = {}) {
    ++runs_;
    AGLOW_TRY(const int code, runProgram({"sh", "-c", command(file, without)}, folder_.path()));
    Outcome outcome{.code = code};
    const std::string said = readAll(folder_.file("log"));
    if (const size_t at = said.find("error[E"); at != std::string::npos)
      outcome.error = said.substr(at + 6, said.find(']', at) - at - 6);
    return outcome;
  }
  Result<Outcome> run(const onnx::Model& candidate, const std::string& without = {}) {
    const std::string file = folder_.file("candidate.onnx");
    AGLOW_OK(onnx::writeModel(file, candidate));
    return run(file, without);
  }

private:
  static std::string word(const std::string& text) {
    std::string quoted = "'";
    for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
  }

  // What is switched off goes by the environment, to every aglow that the command runs.
  std::string command(const std::string& file, const std::string& without) const {
    std::string text =
        without.empty() ? "" : "export AGLOW_DISABLE=\"${AGLOW_DISABLE:+$AGLOW_DISABLE,}\"" + word(without) + "\n";
    if (options_.test.empty()) {
      std::error_code fault;
      const std::string self = std::filesystem::read_symlink("/proc/self/exe", fault).string();
      return text + fmt::format("{} verify {} --backend {}", word(fault ? "aglow" : self), word(file),
                                word(options_.backends));
    }
    text += options_.test;
    for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at + 1))
      text.replace(at, 2, word(file));
    return text;
  }

  const ReduceOptions& options_;
  TemporaryFolder folder_;
  size_t runs_ = 0;
};

// Of a value that a run has shown.
onnx::TypeProto typeOf(const Tensor& tensor) {
  onnx::TypeProto type{
      .kind = onnx::TypeProto::Kind::Tensor, .hasShape = true, .elemType = elemInfo(tensor.type().kind()).onnx};
  for (const int64_t dim : tensor.type().shape().dims())
    type.dims.push_back({.kind = onnx::Dim::Kind::Value, .value = dim});
  return type;
}

// Inputs have sizes from here on: those of --dim, else 1.
Status closeSizes(onnx::Model& model, const ModelOptions& options) {
  AGLOW_TRY(ParsedOptions parsed, options.parse());
  options.takeOnes(model.graph, parsed.import);
  for (onnx::ValueInfo& input : model.graph.inputs) {
    const auto shape = parsed.import.shapes.find(input.name);
    for (size_t i = 0; i < input.type.dims.size(); ++i) {
      onnx::Dim& dim = input.type.dims[i];
      if (dim.kind == onnx::Dim::Kind::Value) continue;
      const auto size = parsed.import.dims.find(dim.symbol);
      const int64_t given = shape != parsed.import.shapes.end() && i < shape->second.size() ? shape->second[i]
                            : size != parsed.import.dims.end()                              ? size->second
                                                                                            : 1;
      dim = {.kind = onnx::Dim::Kind::Value, .value = given, .symbol = {}};
    }
  }
  return {};
}

// What is declared, and what the interpreter shows where it can run the model.
std::map<std::string, onnx::TypeProto> typesOf(const onnx::Model& model, const ReduceOptions& options) {
  std::map<std::string, onnx::TypeProto> types;
  for (const auto* list : {&model.graph.valueInfo, &model.graph.outputs, &model.graph.inputs})
    for (const onnx::ValueInfo& info : *list)
      if (info.type.kind == onnx::TypeProto::Kind::Tensor) types[info.name] = info.type;
  auto inputs = randomInputs(model.graph, {}, {}, 1);
  RunRequest request = options.request;
  request.model.dims.clear();
  auto engine = backendEngine(model, request, "interpreter");
  if (!inputs.ok() || !engine.ok()) return types;
  std::vector<std::string> names;
  for (const onnx::Node& node : model.graph.nodes)
    for (const std::string& name : node.outputs)
      if (!name.empty()) names.push_back(name);
  for (const auto& [name, value] : *inputs)
    if (value.isTensor()) types[name] = typeOf(value.tensor());
  // Some at a time: what one node cannot show hides no other.
  constexpr size_t kAtOnce = 64;
  for (size_t from = 0; from < names.size(); from += kAtOnce) {
    const std::vector<std::string> some(
        names.begin() + static_cast<std::ptrdiff_t>(from),
        names.begin() + static_cast<std::ptrdiff_t>(std::min(from + kAtOnce, names.size())));
    auto values = (*engine)->values(some, *inputs);
    if (!values.ok()) continue;
    for (size_t i = 0; i < some.size(); ++i)
      if ((*values)[i].isTensor() && elemInfo((*values)[i].tensor().type().kind()).onnx != 0)
        types[some[i]] = typeOf((*values)[i].tensor());
  }
  return types;
}

// Passes and rules that change something, without each of which the model does not fail.
Result<std::vector<std::string>> culprits(const onnx::Model& model, const ReduceOptions& options, Tester& tester,
                                          const Outcome& wanted) {
  std::vector<std::string> found;
  ModelOptions plain = options.request.model;
  plain.dims.clear();
  auto parsed = plain.parse();
  if (!parsed.ok()) return found;
  auto compiled = compile(ModelFile{.path = options.output, .onnx = model}, *parsed);
  if (!compiled.ok()) return found;
  std::set<std::string> names;
  for (const PassTiming& timing : compiled->timings)
    if (timing.changes > 0) names.insert(timing.pass);
  for (const auto& [rule, count] : compiled->ruleCounts) names.insert(rule);
  for (const std::string& name : names) {
    AGLOW_TRY(const Outcome outcome, tester.run(model, name));
    if (outcome.code == 0 && !(outcome == wanted)) found.push_back(name);
  }
  return found;
}

Status reduce(const ReduceOptions& options) {
  AGLOW_TRY(ModelFile file, openModel(options.request.model));
  if (!file.onnx)
    return Error{.code = Code::Usage, .message = "what is reduced is a model file, not a text form or a package"};
  AGLOW_OK(onnx::settleTensors(*file.onnx));
  AGLOW_OK(closeSizes(*file.onnx, options.request.model));
  AGLOW_TRY(TemporaryFolder folder, TemporaryFolder::create());
  Tester tester(options, std::move(folder));
  AGLOW_TRY(const Outcome wanted, tester.run(*file.onnx));
  if (wanted.code == 0)
    return Error{
        .code = Code::Usage,
        .message = "the model does not fail: there is nothing to reduce",
        .where = {},
        .hint = "--test COMMAND says what fails, with {} for the file: --test 'aglow verify {} --against onnxruntime'"};
  const auto types = typesOf(*file.onnx, options);
  AGLOW_TRY(const onnx::Model small, reduceModel(*file.onnx, types, [&](const onnx::Model& candidate) -> Result<bool> {
              AGLOW_TRY(const Outcome outcome, tester.run(candidate));
              return outcome == wanted;
            }));
  AGLOW_OK(onnx::writeModel(options.output, small));
  AGLOW_TRY(const std::vector<std::string> passes, culprits(small, options, tester, wanted));
  const size_t before = file.onnx->graph.nodes.size(), after = small.graph.nodes.size();
  if (options.json) {
    nlohmann::ordered_json document = {{"file", options.output},   {"nodes_before", before}, {"nodes", after},
                                       {"exit_code", wanted.code}, {"error", wanted.error},  {"tests", tester.runs()}};
    document["passes"] = passes;
    return printJson(document);
  }
  std::string text = fmt::format("{}: {} of {} nodes fail as the model does ({}), after {} tests\n", options.output,
                                 after, before, wanted.text(), tester.runs());
  for (const onnx::Node& node : small.graph.nodes)
    text += fmt::format("  {} {}\n", node.opType, aglow::quoted(node.name));
  for (const std::string& name : passes) text += fmt::format("without it nothing fails: --disable {}\n", name);
  return printOut(text);
}

}  // namespace

Command reduceCommand() {
  auto options = std::make_shared<ReduceOptions>();
  return {.name = "reduce",
          .doc = "Find a small part of a model that fails as the whole does, for a report",
          .options = {{.names = "model",
                       .place = &options->request.model.model,
                       .doc = "The model that fails",
                       .required = true,
                       .reads = true},
                      {.names = "-o,--output",
                       .place = &options->output,
                       .doc = "Where the small model goes",
                       .type = "FILE",
                       .showDefault = true},
                      {"--test", &options->test,
                       "What fails, a command for the shell with {} for the model (default: verify)", "COMMAND"},
                      {.names = "--backend",
                       .place = &options->backends,
                       .doc = "What verify compares",
                       .type = "A,B",
                       .showDefault = true},
                      {"--dim", &options->request.model.dims, "Size of a symbolic dimension: batch=4", "NAME=N"},
                      {"--follow-links", &options->request.model.followLinks,
                       "Read weights beside the model through links"},
                      {"--json", &options->json, "Output for programs"}},
          .footer =
              "A part counts where the test ends with the same exit code and tells the same error. At last passes and "
              "rules are switched off one by one, by AGLOW_DISABLE: those are named without which nothing fails.\n\n"
              "Examples:\n  aglow reduce model.onnx -o small.onnx\n"
              "  aglow reduce model.onnx --test 'aglow run {} --precision int8-weights'",
          .action = [options] { return finish(reduce(*options)); }};
}

}  // namespace aglow::cli
