// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/session.h"
#include "cli/value_json.h"
#include "compile/text_files.h"
#include "support/file_set.h"
#include "support/quote.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  SessionRequest session;
  std::string outputDir;
};

struct NamedOutputs {
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

Status writeOutputs(const std::string& folder, const NamedOutputs& outputs) {
  return writeTogether([&](FileSet& files) -> Status {
    AGLOW_OK(files.addFolder(folder));
    for (size_t i = 0; i < outputs.values.size(); ++i)
      AGLOW_OK(addValue(files, fmt::format("{}/{}", folder, i), outputs.values[i], outputs.areMaps[i]));
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

Status show(const NamedOutputs& outputs) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, const auto& tensor) {
    out += fmt::format("{} : {} = {}\n", name, type, preview(tensor));
  };
  for (size_t i = 0; i < outputs.values.size(); ++i) {
    const ModelValue& value = outputs.values[i];
    const std::string& name = outputs.names[i];
    if (value.none) out += fmt::format("{} : none\n", name);
    const auto itemName = [&](size_t k) { return value.isSequence ? fmt::format("{}[{}]", name, k) : name; };
    for (size_t k = 0; k < value.tensors.size(); ++k)
      add(itemName(k), value.tensors[k].type().text(), value.tensors[k]);
    for (size_t k = 0; k < value.strings.size(); ++k) add(itemName(k), value.strings[k].text(), value.strings[k]);
    for (size_t k = 0; k < value.maps.size(); ++k) add(itemName(k), value.maps[k].text(), value.maps[k]);
  }
  return printOut(out);
}

Diagnosed<NamedOutputs> runModel(const SessionRequest& request) {
  auto opened = openSession(request);
  if (!opened.ok()) return opened.diagnostics();
  auto outputs = opened->session->run(opened->inputs);
  if (!outputs.ok()) return Diagnostics(outputs.diagnostics()).at(request.model.model);
  NamedOutputs named{.names = {}, .values = *std::move(outputs), .areMaps = {}};
  for (const onnx::ValueInfo& info : opened->session->graph().outputs) {
    const bool maps = !named.values[named.names.size()].maps.empty() || holdsMaps(info.type);
    named.names.push_back(info.name);
    named.areMaps.push_back(maps);
  }
  return named;
}

// A text form is one program, with its sizes.
Diagnosed<NamedOutputs> runProgram(const SessionRequest& request) {
  auto opened = openProgram(request, true);
  if (!opened.ok()) return opened.diagnostics();
  Executable* executable = opened->executable.get();
  if (executable == nullptr) return NamedOutputs{};
  // Inputs that the program does not read (dead, or folded away) need no place in it.
  std::map<std::string, Tensor> used;
  for (const Binding& binding : executable->inputs())
    if (const auto it = opened->given.find(binding.name); it != opened->given.end()) used.insert(*it);
  auto inputs = bindByName(executable->inputs(), used);
  if (!inputs.ok()) return Diagnostics(inputs.error());
  auto outputs = executable->run(*inputs);
  if (!outputs.ok()) return Diagnostics(outputs.error()).at(request.model.model);
  NamedOutputs named;
  for (size_t i = 0; i < outputs->size(); ++i) {
    named.names.push_back(executable->outputs()[i].name);
    named.values.push_back(ModelValue::of((*outputs)[i]));
    named.areMaps.push_back(false);
  }
  return named;
}

Diagnosed<Unit> execute(const RunOptions& run) {
  const bool wholly = isTextForm(run.session.model.model) || !run.session.model.stopAfter.empty();
  auto outputs = wholly ? runProgram(run.session) : runModel(run.session);
  if (!outputs.ok()) return outputs.diagnostics();
  if (!run.session.model.stopAfter.empty()) return Unit{};
  const Status written = run.outputDir.empty() ? show(*outputs) : writeOutputs(run.outputDir, *outputs);
  if (!written.ok()) return Diagnostics(written.error());
  return Unit{};
}

}  // namespace

void addRun(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Compile a model in memory and run it");
  options->session.add(*command);
  command
      ->add_option("--output-dir,-o", options->outputDir,
                   "Where to write 0.npy, 1.npy, …, maps as .json (default: show the outputs)")
      ->type_name("DIR");
  command->footer("Example:\n  aglow run digits.onnx --input image=three.npy --output-dir out");
  command->callback([options, &chosen] {
    chosen = [options] {
      const Diagnosed<Unit> done = execute(*options);
      return done.ok() ? ExitCode::Ok : report(done.diagnostics());
    };
  });
}

}  // namespace aglow::cli
