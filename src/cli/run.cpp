// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/outputs.h"
#include "cli/run_request.h"
#include "compile/text_files.h"
#include "import/onnx/host_values.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  RunRequest request;
  std::string output, labels;
  std::vector<std::string> save;
  int top = 0;
  bool json = false;
};

Status give(const RunOptions& run, const std::vector<NamedOutputs>& outputs) {
  Ranking ranking{.top = static_cast<size_t>(run.top), .labels = {}};
  if (!run.labels.empty()) {
    AGLOW_TRY(ranking.labels, readLabels(run.labels));
    if (ranking.top == 0) ranking.top = 5;
  }
  if (!run.output.empty()) AGLOW_OK(writeOutputs(run.output, outputs));
  if (!run.save.empty()) AGLOW_OK(saveOutputs(run.save, outputs));
  if (run.json) {
    AGLOW_TRY(nlohmann::ordered_json document, outputsJson(outputs));
    if (ranking.top > 0) document["ranking"] = rankingJson(ranking, outputs);
    return printJson(document);
  }
  if (ranking.top > 0) return printOut(rankingText(ranking, outputs));
  return run.output.empty() && run.save.empty() ? printOut(outputsText(outputs)) : Status();
}

Diagnosed<std::vector<NamedOutputs>> runModel(const RunRequest& request) {
  auto opened = openSession(request);
  if (!opened.ok()) return opened.diagnostics();
  auto outputs = opened->session->run(opened->inputs);
  if (!outputs.ok()) return Diagnostics(outputs.diagnostics()).at(request.model.model);
  NamedOutputs named{.prefix = {}, .names = {}, .values = *std::move(outputs), .areMaps = {}};
  for (const onnx::ValueInfo& info : opened->session->graph().outputs) {
    const bool maps = !named.values[named.names.size()].maps.empty() || onnx::holdsMaps(info.type);
    named.names.push_back(info.name);
    named.areMaps.push_back(maps);
  }
  return std::vector{std::move(named)};
}

Result<NamedOutputs> runFunction(Network& network, size_t function, const ModelValues& given) {
  AGLOW_TRY(std::vector<ModelValue> outputs, network.run(function, valuesIn(given)));
  NamedOutputs named{.prefix = {}, .names = {}, .values = std::move(outputs), .areMaps = {}};
  for (const Port& port : network.functions()[function].outputs) named.names.push_back(port.name);
  named.areMaps.resize(named.names.size());
  return named;
}

// A text form is compiled whole, with its sizes, as a package was. Its functions run in the order in which they are
// named, and at the end come the parts of the state.
Diagnosed<std::vector<NamedOutputs>> runPrograms(const RunRequest& request) {
  auto opened = openNetwork(request);
  if (!opened.ok()) return opened.diagnostics();
  std::vector<NamedOutputs> all;
  if (opened->network == nullptr) return all;
  Network& network = *opened->network;
  std::vector<std::string> names = request.model.functions;
  if (names.empty()) names.emplace_back();
  for (const std::string& name : names) {
    const auto function = network.find(name);
    if (!function.ok()) return Diagnostics(function.error()).at(request.model.model);
    auto outputs = runFunction(network, *function, opened->inputs);
    if (!outputs.ok()) return Diagnostics(outputs.error()).at(request.model.model);
    if (names.size() > 1) outputs->prefix = name + ": ";
    all.push_back(*std::move(outputs));
  }
  NamedOutputs state{.prefix = "state "};
  for (size_t i = 0; i < network.states().size(); ++i) {
    auto value = network.state(i);
    if (!value.ok()) return Diagnostics(value.error()).at(request.model.model);
    state.names.push_back(network.states()[i].name);
    state.values.push_back(ModelValue::of(*std::move(value)));
    state.areMaps.push_back(false);
  }
  all.push_back(std::move(state));
  return all;
}

Diagnosed<Unit> execute(const RunOptions& run) {
  const bool wholly = isWhole(run.request.model.model) || !run.request.model.stopAfter.empty();
  auto outputs = wholly ? runPrograms(run.request) : runModel(run.request);
  if (!outputs.ok()) return outputs.diagnostics();
  if (!run.request.model.stopAfter.empty()) return Unit{};
  const Status written = give(run, *outputs);
  if (!written.ok()) return Diagnostics(written.error());
  return Unit{};
}

}  // namespace

Command runCommand() {
  auto options = std::make_shared<RunOptions>();
  Command command{
      .name = "run",
      .doc = "Compile a model in memory and run it",
      .options = options->request.options(),
      .footer =
          "Several functions run one after the other; state stays from one to the next, and is shown or written after "
          "the outputs.\n\n"
          "Examples:\n  aglow run digits.onnx --input image=three.npy --output-dir out\n"
          "  aglow run resnet50.onnx --input photo.jpg --imagenet --labels classes.txt\n"
          "  aglow run enlarge.onnx --input small.png --save large.png\n"
          "  aglow run counter.graph --function add,add,reset,add --input x=two.npy",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options, options->request.media.options());
  addTo(command.options,
        {options->request.padding(),
         {"--output-dir,-o", &options->output,
          "Where to write 0.npy, 1.npy, …, maps as .json; or FILE.npz for all in one; -: to stdout "
          "(default: show the outputs)",
          "DIR"},
         {"--save", &options->save,
          "Write an output as .npy, .npz, .json, .txt, or as an image; FILE alone where there is one", "NAME=FILE"},
         {"--top", &options->top, "Show the N largest of each row, as of classes", "N", Between{1, 1000000}},
         {.names = "--labels",
          .place = &options->labels,
          .doc = "Names of the classes, one a line (with 5 as --top)",
          .type = "FILE",
          .reads = true},
         {"--json", &options->json, "Output for programs: all elements"}});
  return command;
}

}  // namespace aglow::cli
