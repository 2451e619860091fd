// aglow run: compiles a model in memory, runs it on files, and writes or shows what comes out.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/cli.h"
#include "cli/session.h"
#include "tensor/npy.h"

namespace aglow::cli {

namespace {

struct RunOptions {
  SessionOptions session;
  std::string outputDir;
};

// Writes the outputs under their positions. What was written is taken back when a later one fails.
class OutputWriter {
public:
  explicit OutputWriter(std::map<std::string, Tensor> results) : results_(std::move(results)) {}
  ~OutputWriter() {
    if (done_) return;
    std::error_code ignored;
    for (auto it = written_.rbegin(); it != written_.rend(); ++it) std::filesystem::remove(*it, ignored);
  }

  Status write(const std::string& folder, const Interface& interface) {
    AGLOW_OK(makeFolder(folder));
    for (size_t i = 0; i < interface.outputs.size(); ++i)
      AGLOW_OK(write(fmt::format("{}/{}", folder, i), interface.outputs[i]));
    done_ = true;
    return {};
  }

private:
  Status makeFolder(const std::string& folder) {
    std::error_code fault;
    if (std::filesystem::create_directories(folder, fault)) written_.push_back(folder);
    if (fault)
      return Error{.code = Code::FileWrite, .message = "cannot create the folder: " + fault.message(), .where = folder};
    return {};
  }

  Status write(const std::string& base, const Port& port) {
    if (port.kind == Port::Kind::None) {
      written_.push_back(base + ".none");
      if (std::ofstream(base + ".none").good()) return {};
      return Error{.code = Code::FileWrite, .message = "cannot be written", .where = base + ".none"};
    }
    if (port.kind == Port::Kind::Sequence) {
      AGLOW_OK(makeFolder(base));
      for (size_t i = 0; i < port.items.size(); ++i) AGLOW_OK(write(fmt::format("{}/{}", base, i), port.items[i]));
      return {};
    }
    AGLOW_OK(writeNpy(base + ".npy", results_.at(port.placeholder)));
    written_.push_back(base + ".npy");
    return {};
  }

  std::map<std::string, Tensor> results_;
  std::vector<std::string> written_;
  bool done_ = false;
};

std::string preview(const Tensor& tensor) {
  constexpr size_t kShown = 12;
  std::string out;
  const bool real = isFloat(tensor.type().kind());
  const std::vector<double> reals = real ? tensor.doubles() : std::vector<double>{};
  const std::vector<int64_t> ints = real ? std::vector<int64_t>{} : tensor.toInts();
  const size_t count = real ? reals.size() : ints.size();
  for (size_t i = 0; i < std::min(count, kShown); ++i)
    out += (i > 0 ? ", " : "") + (real ? fmt::format("{:.6g}", reals[i]) : fmt::format("{}", ints[i]));
  return "[" + out + (count > kShown ? ", …]" : "]");
}

Status show(const Interface& interface, const std::map<std::string, Tensor>& results) {
  std::string out;
  const auto add = [&](auto&& self, const Port& port, const std::string& name) -> void {
    if (port.kind == Port::Kind::None) out += fmt::format("{} : none\n", name);
    for (size_t i = 0; i < port.items.size(); ++i) self(self, port.items[i], fmt::format("{}[{}]", name, i));
    if (port.kind != Port::Kind::Tensor) return;
    const Tensor& tensor = results.at(port.placeholder);
    out += fmt::format("{} : {} = {}\n", name, tensor.type().text(), preview(tensor));
  };
  for (const Port& port : interface.outputs) add(add, port, port.name);
  return printOut(out);
}

Diagnosed<Unit> execute(const RunOptions& run) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  auto session = openSession(run.session, true);
  if (!session.ok()) return session.diagnostics();
  Executable* executable = session->executable.get();
  if (executable == nullptr) return Unit{};
  // Inputs that the program does not read (dead, or folded away) need no place in it.
  std::map<std::string, Tensor> used;
  for (const Binding& binding : executable->inputs())
    if (const auto it = session->given.find(binding.name); it != session->given.end()) used.insert(*it);
  auto inputs = bindByName(executable->inputs(), used);
  if (!inputs.ok()) return failed(inputs);
  auto outputs = executable->run(*inputs);
  if (!outputs.ok()) return Diagnostics(outputs.error()).at(run.session.model.model);

  std::map<std::string, Tensor> results;
  const auto bindings = executable->outputs();
  for (size_t i = 0; i < bindings.size(); ++i) results[bindings[i].name] = (*outputs)[i];
  const Status written = run.outputDir.empty() ? show(session->interface, results)
                                               : OutputWriter(results).write(run.outputDir, session->interface);
  if (!written.ok()) return Diagnostics(written.error());
  return Unit{};
}

}  // namespace

void addRun(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "Compile a model in memory and run it");
  options->session.add(*command);
  command
      ->add_option("--output-dir,-o", options->outputDir, "Where to write 0.npy, 1.npy, … (default: show the outputs)")
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
