// aglow pack-weights: the weights of a model that was trained again, for code that is there.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "backends/cpu/bundle/c_names.h"
#include "cli/cli.h"
#include "cli/emit.h"
#include "cli/parser.h"
#include "support/file.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

struct PackOptions {
  std::string model, bundle, outputDir;
  bool followLinks = false, json = false;
};

// What a macro of a header stands for; nothing where it has none.
std::optional<std::string> macroOf(std::string_view header, const std::string& name) {
  const std::string line = fmt::format("\n#define {} ", name);
  const size_t at = header.find(line);
  if (at == std::string_view::npos) return {};
  return std::string(header.substr(at + line.size(), header.find('\n', at + line.size()) - at - line.size()));
}

// The bytes of a C string as c_names.h writes it.
std::string stringValue(std::string_view literal) {
  std::string bytes;
  for (size_t at = 1; at + 1 < literal.size(); ++at) {
    if (literal[at] != '\\' || at + 3 >= literal.size()) {
      bytes += literal[at];
      continue;
    }
    int value = 0;
    std::from_chars(literal.data() + at + 1, literal.data() + at + 4, value, 8);
    bytes += static_cast<char>(value);
    at += 3;
  }
  return bytes;
}

struct Known {
  std::string name, folder;
  uint64_t layout = 0;
  std::vector<std::string> words;
  bool weightsInC = false;
};

// What the header of a bundle says of it.
Result<Known> readBundle(const std::string& bundle) {
  std::filesystem::path path(bundle);
  if (path.extension() == ".h") path.replace_extension();
  Known known{.name = path.filename().string(), .folder = path.has_parent_path() ? path.parent_path().string() : "."};
  AGLOW_TRY(const SharedBytes bytes, readFile(path.string() + ".h"));
  const std::string_view header(reinterpret_cast<const char*>(bytes.bytes.data()), bytes.bytes.size());
  const std::string upper = codegen::upperCase(known.name);
  const std::optional<std::string> layout = macroOf(header, upper + "_WEIGHTS_LAYOUT");
  constexpr std::string_view kPrefix = "UINT64_C(0x";
  if (!layout || !layout->starts_with(kPrefix) ||
      std::from_chars(layout->data() + kPrefix.size(), layout->data() + layout->size(), known.layout, 16).ec !=
          std::errc())
    return Error{
        .code = Code::Usage,
        .message = fmt::format("{}.h is not the header of a bundle whose weights can be exchanged", path.string()),
        .where = {},
        .hint = "--for takes what `aglow compile -o out --emit bundle` wrote, as out/model"};
  known.words = wordsOf(stringValue(macroOf(header, upper + "_OPTIONS").value_or("")));
  known.weightsInC = header.find(known.name + "_weights[") != std::string_view::npos;
  return known;
}

// The options that the bundle was compiled with, for another model.
Result<std::shared_ptr<EmitOptions>> optionsOf(const Known& known, const PackOptions& pack) {
  auto options = std::make_shared<EmitOptions>();
  const Program program{.name = "aglow", .commands = {compileCommand(options)}};
  std::vector<std::string> words = {"aglow", "compile", pack.model};
  words.insert(words.end(), known.words.begin(), known.words.end());
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  AGLOW_OK(parse(program, static_cast<int>(given.size()), given.data()));
  options->name = known.name;
  options->outputDir = pack.outputDir.empty() ? known.folder : pack.outputDir;
  options->weights = known.weightsInC ? "c" : "bin";
  options->json = pack.json;
  options->model.followLinks = options->model.followLinks || pack.followLinks;
  return options;
}

Diagnosed<Unit> execute(const PackOptions& pack) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const auto known = readBundle(pack.bundle);
  if (!known.ok()) return failed(known);
  const auto options = optionsOf(*known, pack);
  if (!options.ok()) return failed(options);
  EmitOptions& emit = **options;
  CodeFileOptions code = emit.codeOptions();
  code.weightsFor = known->layout;
  FileSet files;
  if (const Status made = files.addFolder(emit.outputDir); !made.ok()) return failed(made);
  auto sources = compileSources(files, emit, code);
  if (!sources.ok()) return sources.diagnostics();
  const auto added = addCodeFiles(files, *std::move(sources), code);
  if (!added.ok()) return failed(added);
  if (const Status written = finishFiles(emit, files); !written.ok()) return failed(written);
  return Unit{};
}

}  // namespace

Command packWeightsCommand() {
  auto options = std::make_shared<PackOptions>();
  return {
      .name = "pack-weights",
      .doc = "Write the weights of a model for the code of a bundle that is there",
      .options = {{.names = "model",
                   .place = &options->model,
                   .doc = "The model with the new weights",
                   .required = true,
                   .reads = true},
                  {.names = "--for",
                   .place = &options->bundle,
                   .doc = "The bundle: DIR/NAME, as `compile -o DIR` wrote it",
                   .type = "BUNDLE",
                   .required = true},
                  {"-o,--output", &options->outputDir, "Folder for the weights (default: the bundle's)", "DIR"},
                  {"--follow-links", &options->followLinks, "Read weights beside the model through symbolic links"},
                  {"--json", &options->json, "Output for programs: the files, and their bytes"}},
      .footer =
          "The model is compiled as the bundle was, as far as code would be generated; where that would be other code "
          "than the bundle's, nothing is written (E302).\n\n"
          "Example:\n  aglow compile model.onnx -o out --emit bundle\n"
          "  aglow pack-weights retrained.onnx --for out/model",
      .action = [options] { return finish(execute(*options)); }};
}

}  // namespace aglow::cli
