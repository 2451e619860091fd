#include "compile/bundle.h"

#include <fmt/format.h>

#include "codegen/bundle.h"
#include "compile/text_files.h"
#include "support/file.h"

#ifdef AGLOW_LLVM
#include "backends/cpu/cpu.h"
#include "codegen/link.h"
#include "codegen/llvm/generate.h"
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

Status writeWeights(const std::string& base, const codegen::Bundle& bundle) {
  if (bundle.weightsInC) return writeTextFile(base + "_weights.c", codegen::bundleWeightsInC(bundle));
  return writeFileAtomically(base + ".weights.bin", bundle.constants.pieces());
}

}  // namespace

Result<std::string> writeBundle(std::vector<BundleSource> sources, const BundleOptions& options) {
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
  for (BundleSource& source : sources)
    AGLOW_OK(bundle.add(source.name, *std::move(source.compilation.program), source.compilation.interface));

  std::vector<CodeKind> kinds;
  for (const CodeKind& kind : kCodeKinds)
    if (options.emit.contains(kind.emit)) kinds.push_back(kind);
  std::vector<CodeFile> files;
  for (const CodeKind& kind : kinds)
    if (std::find(files.begin(), files.end(), kind.file) == files.end()) files.push_back(kind.file);
  const std::vector<std::string> contents = codegen::generateBundle(bundle, target, files);

  std::string printed;
  const std::string base = options.folder + "/" + options.name;
  for (const CodeKind& kind : kinds) {
    std::string content =
        contents[static_cast<size_t>(std::find(files.begin(), files.end(), kind.file) - files.begin())];
    if (options.folder.empty()) {
      if (!kind.text)
        return Error{.code = Code::Usage, .message = fmt::format("--emit {} needs a folder: -o DIR", kind.emit)};
      printed += content;
      continue;
    }
    if (kind.emit == "so") {
      AGLOW_TRY(content, codegen::linkSharedObject(content, options.name, target.triple(), target.isHost()));
    }
    AGLOW_OK(writeTextFile(base + std::string(kind.ending), content));
  }
  if (options.emit.contains("bundle") || options.emit.contains("so")) {
    AGLOW_OK(writeTextFile(base + ".h", codegen::bundleHeader(bundle)));
    AGLOW_OK(writeWeights(base, bundle));
  }
  if (options.debug && !options.folder.empty())
    for (const codegen::BundleEntry& entry : bundle.entries)
      AGLOW_OK(writeTextFile(options.folder + "/" + entry.listing.file, entry.listing.text));
  return printed;
}

#else

Result<std::string> writeBundle(std::vector<BundleSource>, const BundleOptions&) {
  return Error{.code = Code::UnsupportedFeature, .message = "this build has no code generator"};
}

#endif

}  // namespace aglow
