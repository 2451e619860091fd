#include "compile/code_files.h"

#include <fmt/format.h>

#include "backends/cpu/bundle/bundle.h"
#include "backends/opencl/bundle.h"
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
    {"obj", CodeFile::Object, ".o", false},    {"asm", CodeFile::Assembly, ".s", true},
    {"llvm", CodeFile::Llvm, ".ll", true},
};

}  // namespace

namespace {

Status addEntries(codegen::Bundle& bundle, std::vector<CodeSource>& sources) {
  for (CodeSource& source : sources) {
    Compilation& compiled = source.compilation;
    const std::vector<std::string> names = codegen::bundleFunctionNames(bundle.name, compiled.functionNames());
    for (size_t i = 0; i < names.size(); ++i)
      AGLOW_OK(bundle.add(names[i] + source.suffix, std::move(compiled.programs[i]), compiled.interfaces[i]));
  }
  return {};
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
  AGLOW_OK(addEntries(bundle, sources));
  const std::string base = options.folder + "/" + options.name;
  const opencl::BundleFiles made = opencl::bundleFiles(bundle, backend.shape());
  AGLOW_OK(files.add(base + ".c", made.host));
  AGLOW_OK(files.add(base + ".cl", made.kernels));
  AGLOW_OK(files.add(base + ".h", codegen::bundleHeader(bundle)));
  return addWeights(files, bundle, base);
}

}  // namespace

Result<std::string> addCodeFiles(FileSet& files, std::vector<CodeSource> sources, const CodeFileOptions& options) {
  AGLOW_CHECK(!sources.empty(), "a bundle has at least one entry");
  const std::shared_ptr<const Backend> backend = sources.front().compilation.backend;
  if (const auto* device = dynamic_cast<const OpenClBackend*>(backend.get())) {
    AGLOW_OK(addDeviceFiles(files, sources, *device, options));
    return std::string();
  }
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
  AGLOW_OK(addEntries(bundle, sources));

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
    AGLOW_OK(files.add(base + std::string(kind.ending), content));
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
