// aglow compile: writes what the compiler makes of a model.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "backends/cpu/bundle/c_names.h"
#include "backends/csource/csource.h"
#include "cli/cli.h"
#include "cli/emit.h"
#include "codegen/nest/text.h"
#include "compile/packages.h"
#include "compile/text_files.h"
#include "graph/dot.h"
#include "graph/text.h"
#include "import/onnx/export.h"
#include "import/onnx/model_writer.h"
#include "import/onnx/own_domain.h"
#include "inst/dot.h"
#include "inst/text.h"

namespace aglow::cli {

namespace {

constexpr std::string_view kPackage = "package", kQdq = "onnx-qdq";
constexpr std::string_view kStageEmits[] = {"graph", "onnx", "onnx-qdq", "dot", "ir", "ir-dot", "nest"};

template <class Names>
bool isOneOf(const std::string& what, const Names& names) {
  return std::find(std::begin(names), std::end(names), what) != std::end(names);
}

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

bool isForDevice(const EmitOptions& options) { return options.model.backend.starts_with("opencl"); }

Status checkEmits(const EmitOptions& options) {
  for (const std::string_view what : {std::string_view("onnx"), kQdq})
    if (isOneOf(std::string(what), options.emit) && !options.toFolder())
      return usage(fmt::format("--emit {}: a model file is not for the screen", what), "name a folder with -o DIR");
  if (isOneOf(std::string(kQdq), options.emit)) {
    if (options.emit.size() > 1) return usage("--emit onnx-qdq is of a phase of its own, and nothing else with it");
    if (options.model.precision != "int8" || !options.model.stopAfter.empty())
      return usage("--emit onnx-qdq needs --precision int8, and no --stop-after");
  }
  for (const std::string& what : options.emit)
    if (!isOneOf(what, kStageEmits) && !isOneOf(what, kCodeEmits) && what != kPackage)
      return usage(
          fmt::format("--emit does not know '{}'", what),
          fmt::format("it knows: {}, {}, {}", fmt::join(kStageEmits, ", "), fmt::join(kCodeEmits, ", "), kPackage));
  if (options.kernels == "spirv" && !(isOneOf(std::string("bundle"), options.emit) && isForDevice(options)))
    return usage("--kernels spirv is of bundles for devices", "--emit bundle --backend opencl");
  if (!isOneOf(std::string(kPackage), options.emit)) return {};
  if (options.emit.size() > 1) return usage("--emit package writes one file, and nothing else with it");
  if (isForDevice(options))
    return usage("--emit package: a package has code for processors", "a bundle may be for a device: --emit bundle");
  if (!options.toFolder()) return usage("--emit package: a package is not for the screen", "name a folder with -o DIR");
  if (!options.batches.empty()) return usage("--emit package: a package has one set of sizes, without --batch");
  return {};
}

// All nodes are ones that other engines know too.
Status checkStandard(const onnx::Model& model) {
  std::set<std::string> own;
  for (const onnx::Node& node : model.graph.nodes)
    if (node.domain == onnx::kOwnDomain) own.insert(node.opType);
  if (own.empty()) return {};
  return Error{.code = Code::UnsupportedFeature,
               .message = fmt::format("ONNX has no form for: {}", fmt::join(own, ", ")),
               .where = {},
               .hint = "--emit onnx with --stop-after insert-conversions writes a file that Aglow alone reads"};
}

// Adds what is asked for to the files, or writes it to stdout, as soon as it is there.
class Emitter {
public:
  Emitter(FileSet& files, const EmitOptions& options, const std::string& suffix) : files_(files) {
    for (const std::string& what : options.emit)
      if (isOneOf(what, kStageEmits)) missing_.insert(what);
    byDefault_ = options.emit.empty();
    externalData_ = options.externalData;
    const std::string stem = std::filesystem::path(options.model.model).stem().string();
    if (options.toFolder()) base_ = options.outputDir + "/" + (options.name.empty() ? stem : options.name) + suffix;
  }

  Status write(const Module& module) {
    if (takes("graph")) AGLOW_OK(base_.empty() ? printOut(print(module)) : addModule(files_, base_ + ".graph", module));
    const bool qdq = takes("onnx-qdq");
    if (qdq || takes("onnx")) {
      std::vector<std::string> names;
      for (const auto& function : module.functions()) names.push_back(function->name());
      AGLOW_TRY(const size_t chosen, chooseFunction(names, {}));
      AGLOW_TRY(const onnx::Model model, onnx::exportModel(*module.functions()[chosen]));
      if (qdq) AGLOW_OK(checkStandard(model));
      AGLOW_OK(onnx::addModel(files_, base_ + ".onnx", model, {.external = externalData_}));
    }
    if (takes("dot")) AGLOW_OK(writeText(".dot", drawDot(module)));
    return {};
  }

  Status write(std::span<const Program> programs) {
    if (takes("ir")) AGLOW_OK(base_.empty() ? printOut(print(programs)) : addPrograms(files_, base_ + ".ir", programs));
    if (takes("ir-dot")) AGLOW_OK(writeText(".ir.dot", drawDot(programs)));
    if (takes("nest")) AGLOW_OK(writeText(".nest", nest::printNests(programs)));
    return {};
  }

  // Without a wish, the last thing there is.
  Status finish(const Compilation& compiled) {
    if (byDefault_) missing_ = {compiled.module == nullptr ? "ir" : "graph"};
    AGLOW_OK(compiled.module == nullptr ? write(compiled.programs) : write(*compiled.module));
    if (missing_.empty()) return {};
    const bool graph = missing_.contains("graph") || missing_.contains("onnx") || missing_.contains("dot");
    return Error{.code = Code::Usage,
                 .message = fmt::format("--emit {}: there is no {} to write", fmt::join(missing_, ","),
                                        graph ? "graph" : "program"),
                 .where = {},
                 .hint = graph ? "the file holds instructions" : "instructions come with phase 'irgen'"};
  }

private:
  bool takes(const char* what) { return missing_.erase(what) > 0; }
  Status writeText(const char* ending, const std::string& text) {
    return base_.empty() ? printOut(text) : files_.add(base_ + ending, text);
  }

  FileSet& files_;
  std::set<std::string> missing_;
  bool byDefault_ = false, externalData_ = false;
  std::string base_;
};

// One set of sizes that the model is compiled for, and what tells it from the others.
struct Variant {
  std::string suffix;
  std::map<std::string, int64_t> dims;
};

// Symbols that stand for the first extent of inputs.
Result<std::vector<std::string>> batchSymbols(const ModelFile& file) {
  std::vector<std::string> symbols;
  if (file.onnx)
    for (const onnx::ValueInfo& input : file.onnx->graph.inputs)
      if (!input.type.dims.empty() && input.type.dims.front().kind == onnx::Dim::Kind::Symbol)
        symbols.push_back(input.type.dims.front().symbol);
  if (symbols.empty())
    return usage("--batch: no input of the model leaves the size of its first dimension open",
                 "name the dimension with --dim, or give whole shapes with --shape");
  return symbols;
}

// `--dim NAME=1,4,8` and `--batch 1,4,8` ask for one entry per size, several of them for one per combination.
Result<std::vector<Variant>> variantsOf(EmitOptions& options, const ModelFile& file) {
  constexpr size_t kMost = 256;
  std::vector<Variant> variants(1);
  const auto multiply = [&](const std::string& letters, const std::vector<std::string>& symbols,
                            const std::vector<int64_t>& sizes) -> Status {
    std::vector<Variant> next;
    for (const Variant& variant : variants)
      for (const int64_t size : sizes) {
        next.push_back(variant);
        if (sizes.size() > 1) next.back().suffix += fmt::format("_{}{}", letters, size);
        for (const std::string& symbol : symbols) next.back().dims[symbol] = size;
      }
    if (next.size() > kMost) return usage(fmt::format("more than {} combinations of sizes", kMost));
    variants = std::move(next);
    return {};
  };
  AGLOW_TRY(const SeveralSizes several, takeSeveralSizes(options.model.dims));
  for (const auto& [name, sizes] : several)
    AGLOW_OK(multiply(name == "batch" ? "b" : codegen::cIdentifier(name), {name}, sizes));
  if (!options.batches.empty()) {
    AGLOW_TRY(const std::vector<std::string> symbols, batchSymbols(file));
    AGLOW_OK(multiply("b", symbols, options.batches));
  }
  std::set<std::string> names;
  for (const Variant& variant : variants)
    if (!names.insert(variant.suffix).second) return usage("the same size is asked for twice");
  return variants;
}

Diagnosed<Compilation> compileVariant(FileSet& files, const EmitOptions& emit, const ModelFile& file,
                                      ParsedOptions options, const Variant& variant) {
  for (const auto& [name, size] : variant.dims) options.import.dims[name] = size;
  Emitter emitter(files, emit, variant.suffix);
  // The graph is gone once instructions take its place.
  const auto observer = options.compile.observer;
  options.compile.observer = [&](const StageEvent& event) -> Status {
    if (observer) AGLOW_OK(observer(event));
    if (event.phase == "schedule" && event.pass.empty() && event.graph != nullptr) return emitter.write(*event.graph);
    return {};
  };
  auto compiled = compile(file, options);
  if (!compiled.ok()) return compiled;
  if (emit.model.timing) say(timingTable(*compiled));
  if (const Status written = emitter.finish(*compiled); !written.ok()) return Diagnostics(written.error());
  return compiled;
}

using FileSizes = std::vector<std::pair<std::string, uint64_t>>;

// The files and their bytes, as table and for programs.
Status tellSizes(const EmitOptions& emit, const FileSizes& sizes, uint64_t all) {
  std::string text;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [path, bytes] : sizes) {
    text += fmt::format("{:>14} bytes  {}\n", bytes, path);
    rows.push_back({{"path", path}, {"bytes", bytes}});
  }
  if (emit.json) return printJson({{"files", rows}, {"bytes", all}});
  return emit.sizes ? printOut(text + fmt::format("{:>14} bytes  in all\n", all)) : Status();
}

// Once for each processor that --cpu names.
Diagnosed<Unit> writePackage(EmitOptions emit) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  emit.model.backend = "cpu";
  auto file = openModel(emit.model);
  if (!file.ok()) return failed(file);
  std::vector<Compilation> variants;
  const std::string processors = emit.model.target.cpu;
  for (size_t from = 0; from <= processors.size();) {
    const size_t to = std::min(processors.find(',', from), processors.size());
    emit.model.target.cpu = processors.substr(from, to - from);
    from = to + 1;
    auto options = emit.model.parse();
    if (!options.ok()) return failed(options);
    if (!options->compile.stopAfter.empty())
      return failed(Status(usage("--stop-after ends before there is a program to generate code from")));
    if (file->onnx) {
      auto given = readInputs(file->onnx->graph, emit.model.values, "--value");
      if (!given.ok()) return failed(given);
      options->import.given = *std::move(given);
    }
    auto compiled = compile(*file, *options);
    if (!compiled.ok()) return compiled.diagnostics();
    if (emit.model.timing) say(timingTable(*compiled));
    variants.push_back(*std::move(compiled));
  }
  FileSet files;
  const std::string stem = std::filesystem::path(emit.model.model).stem().string();
  const std::string path = emit.outputDir + "/" + emit.prefix + (emit.name.empty() ? stem : emit.name) + ".aglow";
  Status written = files.addFolder(emit.outputDir);
  if (written.ok()) written = addPackage(files, path, std::move(variants));
  if (written.ok()) written = finishFiles(emit, files);
  if (!written.ok()) return failed(written);
  return Unit{};
}

Diagnosed<Unit> execute(EmitOptions emit) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  if (const Status known = checkEmits(emit); !known.ok()) return failed(known);
  if ((emit.sizes || emit.json) && !emit.toFolder())
    return failed(Status(usage("--sizes and --json tell of files", "name a folder with -o DIR")));
  if (isOneOf(std::string(kPackage), emit.emit)) return writePackage(std::move(emit));
  if (isOneOf(std::string(kQdq), emit.emit)) emit.model.stopAfter = "insert-conversions";
  CodeFileOptions code = emit.codeOptions();
  code.recorded = recordedWords(emit);
  // Everything appears at the end, or nothing does.
  FileSet files;
  if (emit.toFolder())
    if (const Status made = files.addFolder(emit.outputDir); !made.ok()) return failed(made);
  auto sources = compileSources(files, emit, code);
  if (!sources.ok()) return sources.diagnostics();
  if (!sources->empty()) {
    const Result<std::string> text = addCodeFiles(files, *std::move(sources), code);
    if (!text.ok()) return failed(text);
    if (const Status printed = printOut(*text); !printed.ok()) return failed(printed);
  }
  if (const Status written = finishFiles(emit, files); !written.ok()) return failed(written);
  return Unit{};
}

}  // namespace

std::string EmitOptions::symbol() const {
  return codegen::bundleName(prefix + (name.empty() ? std::filesystem::path(model.model).stem().string() : name));
}

CodeFileOptions EmitOptions::codeOptions() const {
  CodeFileOptions code{.name = symbol(),
                       .emit = {},
                       .folder = toFolder() ? outputDir : "",
                       .threads = threads,
                       .weightsInC = weights == "c",
                       .spirv = kernels == "spirv",
                       .debug = debug};
  for (const std::string& what : emit)
    if (isOneOf(what, kCodeEmits)) code.emit.insert(what);
  return code;
}

Status finishFiles(const EmitOptions& emit, FileSet& files) {
  const FileSizes sizes = files.sizes();
  uint64_t all = 0;
  for (const auto& [path, bytes] : sizes) all += bytes;
  if (!emit.maxSize.empty()) {
    AGLOW_TRY(const int64_t most, parseBytes(emit.maxSize, "--max-size"));
    if (all > static_cast<uint64_t>(most))
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("the files have {} bytes, and --max-size allows {}", all, most),
                   .where = {},
                   .hint = "--opt-size makes code smaller, --precision int8-weights weights"};
  }
  AGLOW_OK(files.commit());
  return tellSizes(emit, sizes, all);
}

Diagnosed<std::vector<CodeSource>> compileSources(FileSet& files, EmitOptions& emit, const CodeFileOptions& code) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const bool bounded = !emit.model.deviceMemory.empty() || boundsMemory(emit.model.backend);
  if (!code.emit.empty() && bounded)
    return failed(Status(usage("the weights of a bundle all lie on the device: --emit bundle has no --device-memory",
                               "nor a bound after the backend's name, as in opencl@64M")));
  if (code.emit.contains("c") && !isForDevice(emit))
    emit.model.backend = CSourceBackend::kName;
  else if (!code.emit.empty() && !isForDevice(emit))
    emit.model.backend = "cpu";
  auto file = openModel(emit.model);
  if (!file.ok()) return failed(file);
  auto variants = variantsOf(emit, *file);
  if (!variants.ok()) return failed(variants);
  auto options = emit.model.parse();
  if (!options.ok()) return failed(options);
  if (file->onnx) {
    auto given = readInputs(file->onnx->graph, emit.model.values, "--value");
    if (!given.ok()) return failed(given);
    options->import.given = *std::move(given);
  }
  std::vector<CodeSource> sources;
  for (const Variant& variant : *variants) {
    auto compiled = compileVariant(files, emit, *file, *options, variant);
    if (!compiled.ok()) return compiled.diagnostics();
    if (code.emit.empty()) continue;
    if (!compiled->placed())
      return failed(Status(usage("--stop-after ends before there is a program to generate code from")));
    sources.push_back({variant.suffix, *std::move(compiled)});
  }
  return sources;
}

Command compileCommand() { return compileCommand(std::make_shared<EmitOptions>()); }

Command compileCommand(std::shared_ptr<EmitOptions> options) {
  Command command{.name = "compile",
                  .doc = "Compile a model and write what comes out",
                  .options = options->model.options(),
                  .footer =
                      "Examples:\n  aglow compile model.onnx -o out --emit bundle\n"
                      "  aglow compile model.onnx -o out --emit bundle --target aarch64-linux-gnu --cpu "
                      "cortex-a76\n"
                      "  aglow compile model.onnx -o out --emit so --batch 1,8\n"
                      "  aglow compile model.onnx -o out --emit exe && out/model -o answers x.npy\n"
                      "  aglow compile model.onnx -o out --emit package --cpu x86-64-v3,x86-64-v4\n"
                      "  aglow compile model.onnx --dim batch=1 -o out --emit graph,ir\n"
                      "  aglow compile model.onnx --stop-after lower --emit graph\n"
                      "  aglow compile model.onnx --stop-after lower -o out --emit onnx\n"
                      "  aglow compile out/model.graph --start-from lower --emit ir",
                  .action = [options] { return finish(execute(*options)); }};
  addTo(
      command.options,
      {{"-o,--output", &options->outputDir, "Folder for the results (default, and -: stdout)", "DIR"},
       {.names = "--emit",
        .place = &options->emit,
        .doc = "What to write: package (one file that the other commands and aglow.load run), bundle (object, header, "
               "weights), so (shared object, header, weights), exe (a program that reads and writes .npy files), c "
               "(C99 for any compiler, header, weights), obj, asm, llvm; graph and ir as text, onnx (the graph "
               "as a model file), onnx-qdq (the same with conversions to integers, for other engines), dot and ir-dot "
               "as drawings; nest: the loops of instructions (default: ir, or graph where --stop-after ends "
               "before)",
        .type = "WHAT,…",
        .commas = true},
       {"--name", &options->name, "Name of files and functions (default: the model file's)"},
       {"--prefix", &options->prefix, "Put before the name", "TEXT"},
       {.names = "--weights",
        .place = &options->weights,
        .doc = "Weights of a bundle: bin, a file to map; c, a C array",
        .type = "FORM",
        .check = OneOf{"bin,c"},
        .showDefault = true},
       {.names = "--kernels",
        .place = &options->kernels,
        .doc = "Kernels of a bundle for devices: source; spirv, as SPIR-V beside it, for devices that take that",
        .type = "FORM",
        .check = OneOf{"source,spirv"},
        .showDefault = true},
       {"--external-data", &options->externalData,
        "Keep the tensors of --emit onnx in a file of their own beside the model"},
       {.names = "--batch",
        .place = &options->batches,
        .doc = "Sizes of the inputs' first dimension: one entry for each",
        .type = "N,…",
        .check = Positive{},
        .commas = true},
       {"--threads", &options->threads, "Also write NAME_parallel(), which takes the host's parallel_for"},
       {"--sizes", &options->sizes, "Say what was written, with the bytes of each file"},
       {"--max-size", &options->maxSize, "Refuse to write more than this in all, e.g. 256K", "BYTES"},
       {"--json", &options->json, "Output for programs: the files, and their bytes"},
       {"-g", &options->debug, "Debug information, with the instructions (NAME.ir) as the source"}});
  return command;
}

}  // namespace aglow::cli
