#include "compile/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "backends/csource/csource.h"
#include "backends/interpreter/interpreter.h"
#include "backends/opencl/opencl.h"
#ifdef AGLOW_LLVM
#include "backends/cpu/cpu.h"
#endif
#include "compile/evaluate.h"
#include "compile/kept_packages.h"
#include "compile/packages.h"
#include "compile/phases.h"
#include "compile/text_files.h"
#include "compile/texts.h"
#include "graph/saves.h"
#include "graph/syntax.h"
#include "graph/text.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// What a name goes on with: opencl:0/1@64M.
struct DeviceChoice {
  std::string_view device;  // after a colon
  int64_t memoryBytes = 0;  // after an @: of its memory, at most; 0: all of it
};
using MakeBackend = Result<std::shared_ptr<const Backend>>(const CompileOptions& options, const DeviceChoice& choice);

struct BackendRow {
  std::string_view name;
  MakeBackend* make;
  bool devices = false;  // has several to choose from
  bool memory = true;    // of the device can be bounded
  bool runs = true;      // else it only writes files
};

// What is taken where nobody names one comes last.
constexpr BackendRow kBackends[] = {
    {CSourceBackend::kName,
     [](const CompileOptions&, const DeviceChoice&) -> Result<std::shared_ptr<const Backend>> {
       return std::shared_ptr<const Backend>(std::make_shared<CSourceBackend>());
     },
     false, false, false},
    {"opencl",
     [](const CompileOptions& options, const DeviceChoice& choice) -> Result<std::shared_ptr<const Backend>> {
       AGLOW_TRY(std::shared_ptr<const Backend> backend,
                 OpenClBackend::create(choice.device, {.cache = options.cache,
                                                       .memoryBytes = choice.memoryBytes,
                                                       .tune = options.tune,
                                                       .f64Pairs = options.f64Pairs}));
       return backend;
     },
     true},
    {kReferenceBackend,
     [](const CompileOptions&, const DeviceChoice& choice) -> Result<std::shared_ptr<const Backend>> {
       return std::shared_ptr<const Backend>(std::make_shared<Interpreter>(choice.memoryBytes));
     }},
#ifdef AGLOW_LLVM
    {"cpu",
     [](const CompileOptions& options, const DeviceChoice&) -> Result<std::shared_ptr<const Backend>> {
       AGLOW_TRY(std::shared_ptr<const Backend> backend, CpuBackend::create(options.target));
       return backend;
     },
     false, false},
#endif
};

// Where a bound of memory begins. Names of processors go on after an @ as well, with a blank: CPU @ 2.80GHz.
size_t findBound(std::string_view name) {
  size_t at = name.find('@');
  while (at != std::string_view::npos && name.substr(at + 1).starts_with(' ')) at = name.find('@', at + 1);
  return at;
}

// The row that a name means, which may go on with a device.
const BackendRow* rowOf(std::string_view name) {
  name = name.substr(0, findBound(name));
  for (const BackendRow& row : kBackends)
    if (name == row.name || (row.devices && name.starts_with(row.name) && name[row.name.size()] == ':')) return &row;
  return nullptr;
}

// Digits, and K, M or G after them.
std::optional<int64_t> parseMemory(std::string_view text) {
  const size_t power = text.empty() ? std::string_view::npos : std::string_view("KMG").find(text.back());
  if (power != std::string_view::npos) text.remove_suffix(1);
  const std::optional<uint64_t> count = parseUnsigned(text);
  if (!count || *count == 0 || *count > INT64_MAX) return {};
  return checkedMul(static_cast<int64_t>(*count),
                    power == std::string_view::npos ? 1 : int64_t{1} << (10 * (power + 1)));
}

Result<DeviceChoice> choiceOf(std::string_view name, const BackendRow& row) {
  const size_t at = findBound(name);
  const std::string_view device = name.substr(0, at);
  DeviceChoice choice{.device = device.substr(std::min(device.size(), row.name.size() + 1))};
  if (at == std::string_view::npos) return choice;
  if (!row.memory)
    return Error{
        .code = Code::Usage,
        .message = fmt::format(
            "backend '{}' computes in the host's memory; no device's can be bounded (--device-memory)", row.name)};
  const std::optional<int64_t> bytes = parseMemory(name.substr(at + 1));
  if (!bytes)
    return Error{
        .code = Code::Usage,
        .message = fmt::format("'{}' is no number of bytes of a device's memory, such as 64M", name.substr(at + 1))};
  choice.memoryBytes = *bytes;
  return choice;
}

struct BackendChoice {
  const BackendRow* row = nullptr;
  DeviceChoice device;
};

// What the options name, which live as long; Usage error where it does not take what else they say.
Result<BackendChoice> choiceOf(const CompileOptions& options) {
  const std::string_view name = options.backend.empty() ? defaultBackend() : options.backend;
  const BackendRow* row = rowOf(name);
  if (row == nullptr)
    return Error{.code = Code::Usage,
                 .message = fmt::format("there is no backend '{}'", name),
                 .where = {},
                 .hint = fmt::format("this build has: {}", fmt::join(backendNames(), ", "))};
  AGLOW_TRY(const DeviceChoice device, choiceOf(name, *row));
  if (options.tune.seconds > 0 && !row->devices)
    return Error{.code = Code::Usage,
                 .message = fmt::format("backend '{}' has nothing to measure (--tune); devices have", row->name)};
  if (options.f64Pairs && !row->devices)
    return Error{
        .code = Code::Usage,
        .message = fmt::format("backend '{}' computes f64 as they are (--f64 pairs); devices may not", row->name)};
  return BackendChoice{row, device};
}

// A graph that did not come from a model file takes and gives its placeholders under their own names.
Interface interfaceOf(const Function& function) {
  Interface interface{.function = function.name()};
  const auto port = [](const Placeholder* p) {
    return Port{
        .kind = Port::Kind::Tensor, .name = p->name(), .placeholder = p->name(), .type = p->type(), .items = {}};
  };
  for (const Placeholder* p : inputsOf(function)) interface.inputs.push_back(port(p));
  for (const Placeholder* p : outputsOf(function)) interface.outputs.push_back(port(p));
  return interface;
}

Interface interfaceOf(const Program& program) {
  Interface interface{.function = program.name};
  const auto port = [&](RegionId id) {
    return Port{.kind = Port::Kind::Tensor,
                .name = program[id].name,
                .placeholder = program[id].name,
                .type = program[id].type,
                .items = {}};
  };
  for (const RegionId id : program.inputs()) interface.inputs.push_back(port(id));
  for (const RegionId id : program.outputs()) interface.outputs.push_back(port(id));
  return interface;
}

Diagnosed<Compilation> finish(Compilation compilation, const CompileOptions& options) {
  // What is kept needs no backend, which would say so.
  if (const auto choice = choiceOf(options); !choice.ok()) return choice.error();
  std::string key = cacheKey(compilation, options);
  if (!key.empty())
    if (std::optional<Compilation> kept = findKept(options.cache, key)) {
      kept->interfaces = std::move(compilation.interfaces);
      return *std::move(kept);
    }
  auto backend = makeBackend(options);
  if (!backend.ok()) return backend.error();
  compilation.backend = *backend;
  ReferenceEvaluator evaluator;
  if (Status status = runPhases(compilation, options, evaluator); !status.ok()) return status.error();
  compilation.cache = options.cache;
  compilation.cacheKey = std::move(key);
  return compilation;
}

// Usage error unless every name that is asked for is there.
Status checkFunctions(const std::vector<std::string>& wanted, const std::vector<std::string>& names) {
  for (const std::string& name : wanted) AGLOW_OK(chooseFunction(names, name));
  return {};
}

bool isWanted(const CompileOptions& options, const std::string& name) {
  const auto& wanted = options.functions;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

}  // namespace

std::vector<std::string_view> backendNames() {
  std::vector<std::string_view> names;
  for (const BackendRow& row : kBackends)
    if (row.runs) names.push_back(row.name);
  return names;
}

bool isBackend(std::string_view name) { return rowOf(name) != nullptr; }

bool boundsMemory(std::string_view name) { return findBound(name) != std::string_view::npos; }

std::string_view defaultBackend() { return std::end(kBackends)[-1].name; }

Result<std::shared_ptr<const Backend>> makeBackend(const CompileOptions& options) {
  AGLOW_TRY(const BackendChoice choice, choiceOf(options));
  return choice.row->make(options, choice.device);
}

bool Compilation::placed() const {
  return !programs.empty() &&
         std::all_of(programs.begin(), programs.end(), [](const Program& p) { return p.placed(); });
}

std::vector<std::string> Compilation::functionNames() const {
  std::vector<std::string> names;
  for (const Interface& one : interfaces) names.push_back(one.function);
  return names;
}

Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, const CompileOptions& options) {
  if (module->functions().empty()) return Error{.code = Code::BadGraph, .message = "the module has no function"};
  std::vector<std::string> names;
  for (const auto& function : module->functions()) names.push_back(function->name());
  if (Status known = checkFunctions(options.functions, names); !known.ok()) return known.error();
  for (const std::string& name : names)
    if (!isWanted(options, name)) module->eraseFunction(module->findFunction(name));
  Compilation compilation;
  for (const auto& function : module->functions()) {
    settleSaves(*function);
    compilation.interfaces.push_back(interfaceOf(*function));
  }
  compilation.module = std::move(module);
  return finish(std::move(compilation), options);
}

static Diagnosed<Compilation> compilePrograms(std::vector<Program> programs, const CompileOptions& options) {
  std::vector<std::string> names;
  for (const Program& program : programs) names.push_back(program.name);
  if (Status known = checkFunctions(options.functions, names); !known.ok()) return known.error();
  std::erase_if(programs, [&](const Program& program) { return !isWanted(options, program.name); });
  Compilation compilation;
  for (const Program& program : programs) compilation.interfaces.push_back(interfaceOf(program));
  compilation.programs = std::move(programs);
  return finish(std::move(compilation), options);
}

// Its own code, or, where the reference backend is asked for, that backend on its programs.
static Diagnosed<Compilation> compilePackage(const std::string& path, const CompileOptions& options) {
  if (!options.startFrom.empty() || !options.stopAfter.empty())
    return Error{.code = Code::Usage, .message = "a package is compiled: there is no phase to begin or to end with"};
  const auto choice = choiceOf(options);
  if (!choice.ok()) return choice.error();
  if (choice->row->devices)
    return Error{.code = Code::Usage,
                 .message = fmt::format("a package has code for processors, and none for '{}'", options.backend),
                 .where = {},
                 .hint = "compile the model that it was made from"};
  auto package = openPackage(path);
  if (!package.ok()) return package.error();
  if (Status known = checkFunctions(options.functions, package->functionNames()); !known.ok()) return known.error();
  if (choice->row->name == kReferenceBackend) return finish(*std::move(package), options);
  return *std::move(package);
}

Diagnosed<Compilation> compileModule(std::unique_ptr<Module> module, std::vector<Interface> interfaces,
                                     const CompileOptions& options) {
  Compilation compilation;
  compilation.module = std::move(module);
  compilation.interfaces = std::move(interfaces);
  if (Status known = checkFunctions(options.functions, compilation.functionNames()); !known.ok()) return known.error();
  return finish(std::move(compilation), options);
}

Diagnosed<Compilation> compileTextFile(const std::string& path, const CompileOptions& options) {
  if (isPackage(path)) return compilePackage(path, options);
  if (path.ends_with(".graph")) {
    auto module = readModule(path);
    if (!module.ok()) return module.error();
    return compileModule(*std::move(module), options);
  }
  auto programs = readPrograms(path);
  if (!programs.ok()) return programs.error();
  return compilePrograms(*std::move(programs), options);
}

bool TextForm::isProgram() const {
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos && text[at] == '#') at = text.find('\n', at);
  return at == std::string::npos || text.compare(at, 6, "module") != 0;
}

TextForm textFormOf(const Module& module) {
  // The text is read again in this process: numbers are enough for keys, and hashing large weights is not.
  TextForm form{.text = {}, .blobs = BlobStore(BlobStore::Keys::Numbers)};
  form.text = print(module, &form.blobs);
  return form;
}

Diagnosed<Compilation> compileText(const TextForm& form, const CompileOptions& options) {
  if (!form.isProgram()) {
    auto module = parseModule(form.text, form.blobs);
    if (!module.ok()) return module.error();
    return compileModule(*std::move(module), options);
  }
  auto programs = parseVerified(form.text, form.blobs);
  if (!programs.ok()) return programs.error();
  return compilePrograms(*std::move(programs), options);
}

Result<std::unique_ptr<Executable>> load(Compilation compilation, const BackendOptions& options) {
  AGLOW_CHECK(compilation.placed(), "loading a program that is not complete");
  if (!compilation.cacheKey.empty()) return loadAndKeep(std::move(compilation), options);
  return compilation.backend->compile(std::move(compilation.programs), options);
}

}  // namespace aglow
