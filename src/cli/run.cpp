// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/run_request.h"
#include "cli/value_json.h"
#include "compile/text_files.h"
#include "import/onnx/host_values.h"
#include "support/file_set.h"
#include "support/quote.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  RunRequest request;
  std::string outputDir;
};

// What one function gave, or the state that is left at the end.
struct NamedOutputs {
  std::string prefix;  // of the names; where one function ran there is none
  std::vector<std::string> names;
  std::vector<ModelValue> values;
  std::vector<bool> areMaps;  // or sequences of them, maybe empty
};

// Outputs go under their positions, the items of a sequence into a folder.
Status addValue(FileSet& files, const std::string& base, const ModelValue& value, bool asMaps) {
  if (value.none) return files.add(base + ".none", std::string_view());
  if (asMaps) {
    AGLOW_TRY(const std::string text, mapsText(value));
    return files.add(base + ".json", text + "\n");
  }
  if (value.isSequence) {
    AGLOW_OK(files.addFolder(base));
    for (size_t i = 0; i < value.tensors.size(); ++i)
      AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.tensors[i]));
    for (size_t i = 0; i < value.strings.size(); ++i)
      AGLOW_OK(addNpy(files, fmt::format("{}/{}.npy", base, i), value.strings[i]));
    return {};
  }
  return value.isStrings() ? addNpy(files, base + ".npy", value.strings.front())
                           : addNpy(files, base + ".npy", value.tensor());
}

Status writeOutputs(const std::string& folder, const std::vector<NamedOutputs>& all) {
  return writeTogether([&](FileSet& files) -> Status {
    AGLOW_OK(files.addFolder(folder));
    size_t position = 0;
    for (const NamedOutputs& outputs : all)
      for (size_t i = 0; i < outputs.values.size(); ++i)
        AGLOW_OK(addValue(files, fmt::format("{}/{}", folder, position++), outputs.values[i], outputs.areMaps[i]));
    return {};
  });
}

constexpr size_t kShown = 12;

std::vector<std::string> firstElements(const StringTensor& tensor) {
  std::vector<std::string> texts;
  for (const std::string& text : tensor.strings()) {
    if (texts.size() == kShown) break;
    texts.push_back(aglow::quoted(text));
  }
  return texts;
}

std::vector<std::string> firstElements(const Tensor& tensor) {
  std::vector<std::string> texts;
  const auto add = [&](const auto& numbers, const char* form) {
    for (size_t i = 0; i < std::min(numbers.size(), kShown); ++i)
      texts.push_back(fmt::format(fmt::runtime(form), numbers[i]));
  };
  if (isFloat(tensor.type().kind()))
    add(tensor.doubles(), "{:.6g}");
  else
    add(tensor.toInts(), "{}");
  return texts;
}

std::string preview(const std::vector<std::string>& texts, int64_t count) {
  return fmt::format("{}{}", fmt::join(texts, ", "), count > std::ssize(texts) ? ", …" : "");
}

std::string preview(const StringTensor& tensor) {
  return "[" + preview(firstElements(tensor), tensor.shape().elements()) + "]";
}

std::string preview(const Tensor& tensor) {
  return "[" + preview(firstElements(tensor), tensor.type().elements()) + "]";
}

std::string preview(const MapValue& map) {
  std::vector<std::string> texts = map.hasStrings() ? firstElements(map.strings()) : firstElements(map.numbers());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string key = keyText(map.keys(), static_cast<int64_t>(i));
    texts[i] = fmt::format("{}: {}", areStrings(map.keys()) ? aglow::quoted(key) : key, texts[i]);
  }
  return "{" + preview(texts, map.size()) + "}";
}

Status show(const std::vector<NamedOutputs>& all) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, const auto& tensor) {
    out += fmt::format("{} : {} = {}\n", name, type, preview(tensor));
  };
  for (const NamedOutputs& outputs : all) {
    for (size_t i = 0; i < outputs.values.size(); ++i) {
      const ModelValue& value = outputs.values[i];
      const std::string name = outputs.prefix + outputs.names[i];
      if (value.none) out += fmt::format("{} : none\n", name);
      const auto itemName = [&](size_t k) { return value.isSequence ? fmt::format("{}[{}]", name, k) : name; };
      for (size_t k = 0; k < value.tensors.size(); ++k)
        add(itemName(k), value.tensors[k].type().text(), value.tensors[k]);
      for (size_t k = 0; k < value.strings.size(); ++k) add(itemName(k), value.strings[k].text(), value.strings[k]);
      for (size_t k = 0; k < value.maps.size(); ++k) add(itemName(k), value.maps[k].text(), value.maps[k]);
    }
  }
  return printOut(out);
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
    state.names.push_back(network.states()[i].name);
    state.values.push_back(ModelValue::of(network.state(i)));
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
  const Status written = run.outputDir.empty() ? show(*outputs) : writeOutputs(run.outputDir, *outputs);
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
          "  aglow run counter.graph --function add,add,reset,add --input x=two.npy",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options, {options->request.padding(),
                          {"--output-dir,-o", &options->outputDir,
                           "Where to write 0.npy, 1.npy, …, maps as .json (default: show the outputs)", "DIR"}});
  return command;
}

}  // namespace aglow::cli
