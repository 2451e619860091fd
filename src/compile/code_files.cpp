#include "compile/code_files.h"

#include <fmt/format.h>

#include "backends/cpu/bundle/bundle.h"
#include "backends/csource/bundle.h"
#include "backends/csource/csource.h"
#include "backends/opencl/bundle.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/opencl.h"

#ifdef AGLOW_LLVM
#include "backends/cpu/code/link.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/llvm/generate.h"
#endif

namespace aglow {

#ifdef AGLOW_LLVM

namespace {

using codegen::CodeFile;

struct CodeKind {
  std::string_view emit;
  CodeFile file;
  std::string_view ending;
  bool text;
};
constexpr CodeKind kCodeKinds[] = {
    {"bundle", CodeFile::Object, ".o", false}, {"so", CodeFile::Object, ".so", false},
    {"exe", CodeFile::Object, "", false},      {"obj", CodeFile::Object, ".o", false},
    {"asm", CodeFile::Assembly, ".s", true},   {"llvm", CodeFile::Llvm, ".ll", true},
};

}  // namespace

namespace {

Status addEntries(codegen::Bundle& bundle, std::vector<CodeSource>& sources, const CodeFileOptions& options) {
  bundle.options = options.recorded;
  for (CodeSource& source : sources) {
    Compilation& compiled = source.compilation;
    const std::vector<std::string> names = codegen::bundleFunctionNames(bundle.name, compiled.functionNames());
    for (size_t i = 0; i < names.size(); ++i)
      AGLOW_OK(bundle.add(names[i] + source.suffix, std::move(compiled.programs[i]), compiled.interfaces[i]));
  }
  bundle.seal();
  if (!options.weightsFor || *options.weightsFor == bundle.layout) return {};
  return Error{
      .code = Code::UnsupportedFeature,
      .message = "the code is not for these weights: with them, other code would come out",
      .where = {},
      .hint =
          "shapes, operators, target and version have to be the same, and so do weights that are single numbers in "
          "the code, or equal to others; if they are not, compile again"};
}

Status addWeights(FileSet& files, const codegen::Bundle& bundle, const std::string& base) {
  return bundle.weightsInC ? files.add(base + "_weights.c", codegen::bundleWeightsInC(bundle))
                           : files.add(base + ".weights.bin", bundle.constants.pieces());
}

Status addDeviceFiles(FileSet& files, std::vector<CodeSource>& sources, const OpenClBackend& backend,
                      const CodeFileOptions& options) {
  if (options.emit.size() != 1 || !options.emit.contains("bundle") || options.threads || options.debug)
    return Error{.code = Code::Usage, .message = "for devices there is --emit bundle alone, without --threads and -g"};
  if (options.folder.empty()) return Error{.code = Code::Usage, .message = "--emit bundle needs a folder: -o DIR"};
  codegen::Bundle bundle{.name = options.name,
                         .triple = "OpenCL",
                         .cpu = backend.device().name,
                         .weightsInC = options.weightsInC,
                         .onDevice = true};
  AGLOW_OK(addEntries(bundle, sources, options));
  const std::string base = options.folder + "/" + options.name;
  if (options.weightsFor) return addWeights(files, bundle, base);
  std::optional<device::SpirvTarget> target;
  if (options.spirv) target = opencl::spirvTarget(backend.device());
  AGLOW_TRY(const opencl::BundleFiles made, opencl::bundleFiles(bundle, backend.shape(), backend.device(), target));
  AGLOW_OK(files.add(base + ".c", made.host));
  AGLOW_OK(files.add(base + ".cl", made.kernels));
  if (target) AGLOW_OK(files.add(base + ".spv", made.spirv));
  AGLOW_OK(files.add(base + ".h", codegen::bundleHeader(bundle)));
  return addWeights(files, bundle, base);
}

// NAME.c, NAME.h and the weights; without a folder the first of them comes back.
Result<std::string> addSourceFiles(FileSet& files, std::vector<CodeSource>& sources, const CSourceBackend& backend,
                                   const CodeFileOptions& options) {
  if (options.emit.size() != 1 || !options.emit.contains("c") || options.threads || options.debug)
    return Error{.code = Code::Usage,
                 .message = "--emit c is of a backend of its own: no other code goes with it, nor --threads and -g"};
  codegen::Bundle bundle{.name = options.name, .triple = "c99", .cpu = "any", .weightsInC = options.weightsInC};
  AGLOW_OK(addEntries(bundle, sources, options));
  if (options.weightsFor) {
    AGLOW_OK(addWeights(files, bundle, options.folder + "/" + options.name));
    return std::string();
  }
  std::string source = csource::bundleSource(bundle, backend.shape());
  if (options.folder.empty()) return source;
  const std::string base = options.folder + "/" + options.name;
  AGLOW_OK(files.add(base + ".c", source));
  AGLOW_OK(files.add(base + ".h", codegen::bundleHeader(bundle)));
  AGLOW_OK(addWeights(files, bundle, base));
  return std::string();
}

}  // namespace

Result<std::string> addCodeFiles(FileSet& files, std::vector<CodeSource> sources, const CodeFileOptions& options) {
  AGLOW_CHECK(!sources.empty(), "a bundle has at least one entry");
  const std::shared_ptr<const Backend> backend = sources.front().compilation.backend;
  if (const auto* device = dynamic_cast<const OpenClBackend*>(backend.get())) {
    AGLOW_OK(addDeviceFiles(files, sources, *device, options));
    return std::string();
  }
  if (options.spirv)
    return Error{.code = Code::Usage,
                 .message = "--kernels spirv is of bundles for devices",
                 .where = {},
                 .hint = "--emit bundle --backend opencl"};
  if (const auto* source = dynamic_cast<const CSourceBackend*>(backend.get()))
    return addSourceFiles(files, sources, *source, options);
  const auto* cpu = dynamic_cast<const CpuBackend*>(backend.get());
  if (cpu == nullptr)
    return Error{.code = Code::Usage,
                 .message = fmt::format("backend '{}' makes no machine code", backend->name()),
                 .where = {},
                 .hint = "--backend cpu"};
  const codegen::Target& target = cpu->target();
  codegen::Bundle bundle{.name = options.name,
                         .triple = target.triple(),
                         .cpu = target.cpu(),
                         .features = codegen::checkedFeatures(target),
                         .threads = options.threads,
                         .weightsInC = options.weightsInC,
                         .debug = options.debug};
  AGLOW_OK(addEntries(bundle, sources, options));
  if (options.weightsFor) {
    AGLOW_OK(addWeights(files, bundle, options.folder + "/" + options.name));
    return std::string();
  }

  std::vector<CodeKind> kinds;
  for (const CodeKind& kind : kCodeKinds)
    if (options.emit.contains(kind.emit)) kinds.push_back(kind);
  std::vector<CodeFile> forms;
  for (const CodeKind& kind : kinds)
    if (std::find(forms.begin(), forms.end(), kind.file) == forms.end()) forms.push_back(kind.file);
  AGLOW_TRY(const std::vector<std::string> contents, codegen::generateBundle(bundle, target, forms));

  std::string printed;
  const std::string base = options.folder + "/" + options.name;
  for (const CodeKind& kind : kinds) {
    std::string content =
        contents[static_cast<size_t>(std::find(forms.begin(), forms.end(), kind.file) - forms.begin())];
    if (options.folder.empty()) {
      if (!kind.text)
        return Error{.code = Code::Usage, .message = fmt::format("--emit {} needs a folder: -o DIR", kind.emit)};
      printed += content;
      continue;
    }
    if (kind.emit == "so") {
      AGLOW_TRY(content, codegen::linkSharedObject(content, options.name, target.triple(), target.isHost()));
    }
    if (kind.emit == "exe") {
      AGLOW_TRY(content, codegen::linkProgram(content, options.name, bundle.constants.pieces(), target.triple(),
                                              target.isHost()));
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(content));
    AGLOW_OK(files.add(base + std::string(kind.ending), std::span(&bytes, 1), kind.emit == "exe" ? 0777 : 0666));
  }
  if (options.folder.empty()) return printed;
  const bool whole = options.emit.contains("bundle") || options.emit.contains("so");
  if (whole) AGLOW_OK(files.add(base + ".h", codegen::bundleHeader(bundle)));
  if (whole) AGLOW_OK(addWeights(files, bundle, base));
  if (options.debug)
    for (const codegen::BundleEntry& entry : bundle.entries)
      AGLOW_OK(files.add(options.folder + "/" + entry.listing.file, entry.listing.text));
  return printed;
}

#else

Result<std::string> addCodeFiles(FileSet&, std::vector<CodeSource>, const CodeFileOptions&) {
  return Error{.code = Code::UnsupportedFeature, .message = "this build has no code generator"};
}

#endif

}  // namespace aglow
