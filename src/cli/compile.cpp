// aglow compile: writes what the compiler makes of a model.
#include <fmt/format.h>

#include <filesystem>

#include "cli/cli.h"
#include "cli/model_options.h"
#include "compile/text_files.h"
#include "graph/dot.h"
#include "graph/text.h"
#include "inst/dot.h"
#include "inst/text.h"

namespace aglow::cli {

namespace {

struct EmitOptions {
  ModelOptions model;
  std::vector<std::string> emit;
  std::string outputDir;
};

constexpr std::string_view kEmits[] = {"graph", "dot", "ir", "ir-dot"};

Status checkEmits(const std::vector<std::string>& emits) {
  for (const std::string& what : emits)
    if (std::find(std::begin(kEmits), std::end(kEmits), what) == std::end(kEmits))
      return Error{.code = Code::Usage,
                   .message = fmt::format("--emit does not know '{}'", what),
                   .where = {},
                   .hint = fmt::format("it knows: {}", fmt::join(kEmits, ", "))};
  return {};
}

// Writes what is asked for into a folder or to stdout, as soon as it is there.
class Emitter {
public:
  explicit Emitter(const EmitOptions& options) : options_(options), missing_(options.emit.begin(), options.emit.end()) {
    if (options.outputDir.empty()) return;
    base_ = options.outputDir + "/" + std::filesystem::path(options.model.model).stem().string();
  }

  Status makeFolder() const {
    if (base_.empty()) return {};
    std::error_code fault;
    std::filesystem::create_directories(options_.outputDir, fault);
    if (!fault) return {};
    return Error{.code = Code::FileWrite,
                 .message = "cannot create the folder: " + fault.message(),
                 .where = options_.outputDir};
  }

  Status write(const Module& module) {
    if (takes("graph")) AGLOW_OK(base_.empty() ? printOut(print(module)) : writeModule(base_ + ".graph", module));
    if (takes("dot")) AGLOW_OK(writeText(".dot", drawDot(module)));
    return {};
  }

  Status write(const Program& program) {
    if (takes("ir")) AGLOW_OK(base_.empty() ? printOut(print(program)) : writeProgram(base_ + ".ir", program));
    if (takes("ir-dot")) AGLOW_OK(writeText(".ir.dot", drawDot(program)));
    return {};
  }

  // Without a wish, the last thing there is.
  Status finish(const Compilation& compiled) {
    if (options_.emit.empty()) missing_ = {compiled.program ? "ir" : "graph"};
    AGLOW_OK(compiled.program ? write(*compiled.program) : write(*compiled.module));
    if (missing_.empty()) return {};
    const bool graph = missing_.contains("graph") || missing_.contains("dot");
    return Error{.code = Code::Usage,
                 .message = fmt::format("--emit {}: there is no {} to write", fmt::join(missing_, ","),
                                        graph ? "graph" : "program"),
                 .where = {},
                 .hint = graph ? "the file holds instructions" : "instructions come with phase 'irgen'"};
  }

private:
  bool takes(const char* what) { return missing_.erase(what) > 0; }
  Status writeText(const char* ending, const std::string& text) const {
    return base_.empty() ? printOut(text) : writeTextFile(base_ + ending, text);
  }

  const EmitOptions& options_;
  std::set<std::string> missing_;
  std::string base_;
};

Diagnosed<Unit> execute(const EmitOptions& emit) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  auto options = emit.model.parse();
  if (!options.ok()) return failed(options);
  if (const Status known = checkEmits(emit.emit); !known.ok()) return failed(known);
  auto file = openModel(emit.model.model);
  if (!file.ok()) return failed(file);
  if (file->onnx) {
    auto given = readInputs(file->onnx->graph, emit.model.values, "--value");
    if (!given.ok()) return failed(given);
    options->given = *std::move(given);
  }
  Emitter emitter(emit);
  if (const Status made = emitter.makeFolder(); !made.ok()) return failed(made);

  // The graph is gone once instructions take its place.
  const auto observer = options->observer;
  options->observer = [&](const StageEvent& event) -> Status {
    if (observer) AGLOW_OK(observer(event));
    if (event.phase == "schedule" && event.pass.empty() && event.graph != nullptr) return emitter.write(*event.graph);
    return {};
  };
  auto compiled = compile(*file, *options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (emit.model.timing) std::cerr << timingTable(*compiled);
  if (const Status written = emitter.finish(*compiled); !written.ok()) return failed(written);
  return Unit{};
}

}  // namespace

void addCompile(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compile a model and write what comes out");
  options->model.add(*command);
  command->add_option("-o,--output", options->outputDir, "Folder for the results (default: stdout)")->type_name("DIR");
  command
      ->add_option("--emit", options->emit,
                   "What to write: graph and ir as text, dot and ir-dot as drawings (default: ir, or graph where "
                   "--stop-after ends before)")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->type_name("WHAT,…");
  command->footer(
      "Examples:\n  aglow compile model.onnx --dim batch=1 -o out --emit graph,ir\n"
      "  aglow compile model.onnx --stop-after lower --emit graph\n"
      "  aglow compile out/model.graph --start-from lower --emit ir");
  command->callback([options, &chosen] {
    chosen = [options] {
      const Diagnosed<Unit> done = execute(*options);
      return done.ok() ? ExitCode::Ok : report(done.diagnostics());
    };
  });
}

}  // namespace aglow::cli
