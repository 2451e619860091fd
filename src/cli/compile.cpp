// aglow compile: writes what the compiler makes of a model.
#include <fmt/format.h>

#include <filesystem>

#include "cli/cli.h"
#include "cli/model_options.h"
#include "compile/text_files.h"
#include "graph/dot.h"
#include "graph/text.h"
#include "inst/text.h"

namespace aglow::cli {

namespace {

struct EmitOptions {
  ModelOptions model;
  std::vector<std::string> emit;
  std::string outputDir;
};

constexpr std::string_view kEmits[] = {"graph", "ir", "dot"};

Diagnosed<Unit> execute(const EmitOptions& emit) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  auto options = emit.model.parse();
  if (!options.ok()) return failed(options);
  for (const std::string& what : emit.emit)
    if (std::find(std::begin(kEmits), std::end(kEmits), what) == std::end(kEmits))
      return Error{.code = Code::Usage,
                   .message = fmt::format("--emit does not know '{}'", what),
                   .where = {},
                   .hint = fmt::format("it knows: {}", fmt::join(kEmits, ", "))};
  auto file = openModel(emit.model.model);
  if (!file.ok()) return failed(file);
  if (file->onnx) {
    auto given = readInputs(file->onnx->graph, emit.model.values, "--value");
    if (!given.ok()) return failed(given);
    options->given = *std::move(given);
  }

  std::error_code fault;
  if (!emit.outputDir.empty()) std::filesystem::create_directories(emit.outputDir, fault);
  if (fault)
    return Error{
        .code = Code::FileWrite, .message = "cannot create the folder: " + fault.message(), .where = emit.outputDir};
  const std::string base = emit.outputDir + "/" + std::filesystem::path(emit.model.model).stem().string();

  // The graph as it is just before instructions take its place, or where the pipeline stops.
  const auto wants = [&](std::string_view what) {
    return std::find(emit.emit.begin(), emit.emit.end(), what) != emit.emit.end();
  };
  const auto writeGraph = [&](const Module& module) -> Status {
    if (wants("graph"))
      AGLOW_OK(emit.outputDir.empty() ? printOut(print(module)) : writeModule(base + ".graph", module));
    if (wants("dot"))
      AGLOW_OK(emit.outputDir.empty() ? printOut(drawDot(module)) : writeTextFile(base + ".dot", drawDot(module)));
    return {};
  };
  const auto observer = options->observer;
  options->observer = [&](const StageEvent& event) -> Status {
    if (observer) AGLOW_OK(observer(event));
    if (event.phase == "schedule" && event.pass.empty() && event.graph != nullptr) return writeGraph(*event.graph);
    return {};
  };

  auto compiled = compile(*file, *options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (emit.model.timing) std::cerr << timingTable(*compiled);
  Status written;
  if (compiled->program && wants("ir"))
    written =
        emit.outputDir.empty() ? printOut(print(*compiled->program)) : writeProgram(base + ".ir", *compiled->program);
  else if (compiled->module && options->stopAfter != "schedule")
    written = writeGraph(*compiled->module);
  if (!written.ok()) return failed(written);
  return Unit{};
}

}  // namespace

void addCompile(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand("compile", "Compile a model and write what comes out");
  options->model.add(*command);
  options->emit = {"ir"};
  command->add_option("-o,--output", options->outputDir, "Folder for the results (default: stdout)")->type_name("DIR");
  command->add_option("--emit", options->emit, "What to write: graph, ir, dot")
      ->delimiter(',')
      ->type_name("WHAT,…")
      ->capture_default_str();
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
