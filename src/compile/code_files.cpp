#include "compile/code_files.h"

#include <fmt/format.h>

#include "backends/cpu/bundle/bundle.h"

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

Result<std::string> addCodeFiles(FileSet& files, std::vector<CodeSource> sources, const CodeFileOptions& options) {
  AGLOW_CHECK(!sources.empty(), "a bundle has at least one entry");
  const std::shared_ptr<const Backend> backend = sources.front().compilation.backend;
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
  for (CodeSource& source : sources) {
    Compilation& compiled = source.compilation;
    const std::vector<std::string> names = codegen::bundleFunctionNames(options.name, compiled.functionNames());
    for (size_t i = 0; i < names.size(); ++i)
      AGLOW_OK(bundle.add(names[i] + source.suffix, std::move(compiled.programs[i]), compiled.interfaces[i]));
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
    AGLOW_OK(files.add(base + std::string(kind.ending), content));
  }
  if (options.folder.empty()) return printed;
  const bool whole = options.emit.contains("bundle") || options.emit.contains("so");
  if (whole) AGLOW_OK(files.add(base + ".h", codegen::bundleHeader(bundle)));
  if (whole && bundle.weightsInC) AGLOW_OK(files.add(base + "_weights.c", codegen::bundleWeightsInC(bundle)));
  if (whole && !bundle.weightsInC) AGLOW_OK(files.add(base + ".weights.bin", bundle.constants.pieces()));
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
