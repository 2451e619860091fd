// The differential fuzzer: random graphs of all operators on every engine, against the interpreter's meaning.
//
//   differential --seed 1 --count 300          draws and compares; differences are shrunk into --keep (default: .)
//   differential --onnx-dir DIR --standard     also writes models of standard operators with inputs, outputs and bounds
//                                              (against_onnxruntime.py compares them)
//   differential --opencl                      compares the interpreter with an OpenCL device alone
//   differential --jobs N                      shares the seeds among N processes
//   differential --replay DIR                  compares the kept cases of a folder on all engines
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <optional>

#include "check.h"
#include "graph/text.h"
#include "import/onnx/export.h"
#include "import/onnx/model_writer.h"
#include "jobs.h"
#include "reference.h"
#include "support/temporary.h"
#include "tensor/npy.h"

namespace {

using namespace aglow;                // NOLINT: a program of its own
using namespace aglow::differential;  // NOLINT

std::atomic<uint64_t> currentSeed{0};

// Generated code that crashes takes the program with it; the seed is what is needed to see it again.
void onCrash(int signal) {
  char text[] = "crashed at seed                      \n";
  uint64_t seed = currentSeed;
  for (char* at = text + 36; seed > 0; seed /= 10) *--at = static_cast<char>('0' + seed % 10);
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(2);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Options {
  uint64_t seed = 1;
  uint64_t count = 300;
  double seconds = 1e9;
  uint64_t jobs = 1;
  std::string keep = ".", replay, onnxDir;
  bool shrink = true, interpreted = false, opencl = false;
  DrawOptions draw;
};

const Engine& engineNamed(const std::vector<Engine>& engines, const std::string& name) {
  for (const Engine& engine : engines)
    if (engine.name == name) return engine;
  return engines.front();
}

void tellDifference(const Case& c, const std::string& title, const Verdict& verdict) {
  std::cout << title << ": " << verdict.engine << ": " << verdict.what << "\n" << print(c.function()) << std::flush;
}

// seed_N/model.onnx, in_NAME.npy, out_NAME.npy and bound_NAME.npy, where ONNX has every operator.
Status writeForOthers(const std::string& folder, const Case& c) {
  AGLOW_TRY(const onnx::Model model, onnx::exportModel(c.function()));
  if (model.opsets.size() != 1) return {};
  Result<Reference> reference = Reference::of(c);
  if (!reference.ok()) return {};
  std::filesystem::create_directories(folder);
  for (const auto& [name, value] : c.inputs) AGLOW_OK(writeNpy(folder + "/in_" + name + ".npy", value));
  for (size_t i = 0; i < reference->names().size(); ++i) {
    const std::string name = reference->names()[i] + ".npy";
    AGLOW_OK(writeNpy(folder + "/out_" + name, reference->outputs()[i]));
    AGLOW_OK(writeNpy(folder + "/bound_" + name, reference->bounds(i)));
  }
  return onnx::writeModel(folder + "/model.onnx", model);
}

void fuzzOne(const Options& options, uint64_t seed, Counts& counts) {
  currentSeed = seed;
  Case c = drawCase(seed, options.draw);
  std::vector<Engine> engines = options.opencl ? deviceEngines() : enginesFor(seed);
  if (options.interpreted) std::erase_if(engines, [](const Engine& e) { return e.options.backend != "interpreter"; });
  ++counts.graphs;
  counts.nodes += c.function().size();
  const Verdict verdict = check(c, engines);
  if (verdict.kind == Verdict::Kind::Fails) ++counts.fails;
  if (verdict.kind == Verdict::Kind::Relaxed) ++counts.relaxed;
  if (verdict.kind == Verdict::Kind::Agree && !options.onnxDir.empty())
    if (const Status written = writeForOthers(fmt::format("{}/seed_{}", options.onnxDir, seed), c); !written.ok())
      std::cout << written.error().text() << "\n";
  if (verdict.kind != Verdict::Kind::Differ) return;
  ++counts.differences;
  const Engine& engine = engineNamed(engines, verdict.engine);
  if (options.shrink) c = shrunk(std::move(c), engine);
  const Verdict last = options.shrink ? check(c, {engine}) : verdict;
  tellDifference(c, fmt::format("seed {}", seed), last);
  const std::string path = fmt::format("{}/seed_{}.graph", options.keep, seed);
  if (const Status written = writeCase(path, c); !written.ok()) std::cout << written.error().text() << "\n";
}

// Nobody asks again for the kernels of random graphs: PoCL forgets them, and where it needs files meanwhile, they are
// in memory, since it waits for each to be on the disk.
std::optional<TemporaryFolder> forgetKernels() {
  const std::string memory = "/dev/shm";
  auto folder = TemporaryFolder::create(std::filesystem::is_directory(memory) ? memory : "");
  if (!folder.ok()) return std::nullopt;
  setenv("POCL_CACHE_DIR", folder->path().c_str(), 1);
  setenv("POCL_KERNEL_CACHE", "0", 1);
  return *std::move(folder);
}

// Every seed whose number leaves this rest; nothing where there is no device.
std::optional<Counts> fuzzShare(const Options& options, uint64_t job) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  // As long as someone holds the backend, what its driver has loaded serves all graphs: to read PoCL's library of
  // functions takes longer than to build the kernels of a graph.
  const auto held = makeBackend((options.opencl ? deviceEngines() : enginesFor(0)).back().options);
  if (!held.ok()) {
    std::cerr << held.error().text() << "\n";
    return std::nullopt;
  }
  Counts counts;
  for (uint64_t i = job; i < options.count && spent() < options.seconds; i += options.jobs) {
    fuzzOne(options, options.seed + i, counts);
    if (counts.graphs % 500 == 0) std::cerr << fmt::format("{} graphs, {:.0f} s\n", counts.graphs, spent());
  }
  return counts;
}

int fuzz(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto forgotten = forgetKernels();
  const std::optional<Counts> counts = inProcesses(options.jobs, [&](uint64_t job) { return fuzzShare(options, job); });
  if (!counts) return 2;
  std::cout << fmt::format(
      "{} graphs of {} nodes from seed {}: {} differences, {} relaxed by rules, {} that fail "
      "everywhere, {:.1f} s\n",
      counts->graphs, counts->nodes, options.seed, counts->differences, counts->relaxed, counts->fails,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return counts->differences == 0 ? 0 : 1;
}

int replay(const Options& options) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(options.replay))
    if (entry.path().extension() == ".graph") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int differences = 0;
  for (const auto& file : files) {
    const Result<Case> c = readCase(file.string());
    if (!c.ok()) {
      std::cout << c.error().text() << "\n";
      return 2;
    }
    const Verdict verdict = check(*c, allEngines());
    if (verdict.kind != Verdict::Kind::Differ) continue;
    ++differences;
    tellDifference(*c, file.string(), verdict);
  }
  std::cout << fmt::format("{} kept cases, {} differences\n", files.size(), differences);
  return differences == 0 ? 0 : 1;
}

int usage() {
  std::cerr << "differential [--seed N] [--count N] [--seconds N] [--nodes N] [--standard] [--interpreted] [--opencl]\n"
               "             [--jobs N] [--keep DIR] [--no-shrink] [--onnx-dir DIR]\n"
               "differential --replay DIR\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool flag = word == "--standard" || word == "--no-shrink" || word == "--interpreted" || word == "--opencl";
    if (!flag && i + 1 == argc) return usage();
    if (word == "--seed")
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--count")
      options.count = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--seconds")
      options.seconds = std::strtod(argv[++i], nullptr);
    else if (word == "--jobs")
      options.jobs = std::max<uint64_t>(std::strtoull(argv[++i], nullptr, 10), 1);
    else if (word == "--nodes")
      options.draw.nodes = static_cast<int>(std::strtol(argv[++i], nullptr, 10));
    else if (word == "--keep")
      options.keep = argv[++i];
    else if (word == "--onnx-dir")
      options.onnxDir = argv[++i];
    else if (word == "--replay")
      options.replay = argv[++i];
    else if (word == "--standard")
      options.draw.standard = true;
    else if (word == "--interpreted")
      options.interpreted = true;
    else if (word == "--opencl")
      options.opencl = true;
    else if (word == "--no-shrink")
      options.shrink = false;
    else
      return usage();
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, onCrash);
  return options.replay.empty() ? fuzz(options) : replay(options);
}
