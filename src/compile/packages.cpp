#include "compile/packages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/code/cpu_features.h"
#include "backends/cpu/code/executable.h"
#include "backends/cpu/package/image.h"
#include "backends/cpu/package/package_file.h"
#include "compile/package_parts.h"
#include "compile/package_text.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "support/machine.h"
#include "support/quote.h"

#ifdef AGLOW_LLVM
#include "backends/cpu/cpu.h"
#include "backends/cpu/llvm/generate.h"
#endif

namespace aglow {

namespace {

using codegen::LoadedCode;

// Runs code that is there.
class PackageBackend final : public Backend {
public:
  PackageBackend(LoadedCode code, std::string target, bool found)
      : code_(std::move(code)), target_(std::move(target)), found_(found) {}

  std::string_view name() const override { return "package"; }
  Decision supports(const Node&) const override { return Decision::no("a package holds what was compiled before"); }
  Result<std::optional<Plan>> plan(const Program&, const Instr&) const override { return std::optional<Plan>(); }
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override {
    AGLOW_OK(checkMemory(programs, options));
    AGLOW_CHECK(programs.size() == code_.entries.size(), "a package runs its own programs");
    std::vector<codegen::MemoryMap> memory;
    for (const Program& program : programs) memory.emplace_back(program);
    return codegen::makeExecutable({.programs = std::move(programs),
                                    .memory = std::move(memory),
                                    .code = code_,
                                    .target = target_,
                                    .pool = options.threadPool(),
                                    .cached = found_},
                                   options);
  }

private:
  LoadedCode code_;
  std::string target_;
  bool found_;
};

Error damaged(std::string message) { return {.code = Code::BadPackage, .message = std::move(message)}; }

std::string_view asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string targetOf(const PackageText& package) { return fmt::format("{} {}", package.triple, package.cpu); }

bool isOfThisKind(const PackageText& package) {
#if defined(__x86_64__) && defined(__linux__)
  return package.triple.starts_with("x86_64");
#else
  return false;
#endif
}

bool runsHere(const PackageText& package) {
  return isOfThisKind(package) && codegen::missingHere(package.features).empty();
}

Result<PackageText> readDescription(const PackageFile& file, uint32_t variant) {
  AGLOW_TRY(const std::span<const std::byte> bytes, file.find(PackageSection::Description, variant));
  Result<PackageText> package = parsePackage(asText(bytes));
  if (!package.ok()) return damaged("its description cannot be parsed: " + package.error().message);
  return package;
}

// Why no variant runs on this processor.
Error otherProcessor(std::span<const PackageText> variants) {
  std::vector<std::string> whys;
  for (const PackageText& variant : variants) {
    const std::vector<std::string> missing = codegen::missingHere(variant.features);
    whys.push_back(!isOfThisKind(variant)
                       ? fmt::format("{} is another machine", shown(variant.triple))
                       : fmt::format("for {} this processor lacks {}", shown(variant.cpu), fmt::join(missing, " ")));
  }
  return {.code = Code::OtherPackage,
          .message = fmt::format("the package holds no code for this processor: {}", fmt::join(whys, "; ")),
          .where = {},
          .hint = "write it with `aglow compile --emit package --cpu x86-64-v3,x86-64-v4`"};
}

// What the programs take and give has a port, and ports have what the programs give.
Status checkInterfaces(std::span<const Program> programs, const std::vector<Interface>& interfaces) {
  if (programs.size() != interfaces.size()) return damaged("it has other functions than programs");
  for (size_t i = 0; i < programs.size(); ++i) {
    const auto typesOf = [](const std::vector<Port>& ports) {
      std::map<std::string, Type> types;
      for (const Port& port : ports) {
        if (port.kind == Port::Kind::Tensor) types.emplace(port.placeholder, port.type);
        for (const Port& item : port.items) types.emplace(item.placeholder, item.type);
      }
      return types;
    };
    const auto agree = [&](const Type* type, RegionId id) { return type != nullptr && *type == programs[i][id].type; };
    const std::map<std::string, Type> in = typesOf(interfaces[i].inputs), out = typesOf(interfaces[i].outputs);
    size_t given = 0;
    for (const RegionId id : programs[i].inputs()) {
      const auto it = in.find(programs[i][id].name);
      if (!agree(it == in.end() ? nullptr : &it->second, id)) return damaged("a program's input has no port");
    }
    for (const RegionId id : programs[i].outputs()) {
      const auto it = out.find(programs[i][id].name);
      if (it == out.end()) continue;
      if (!agree(&it->second, id)) return damaged("a program's output has another type than its port");
      ++given;
    }
    if (given != out.size()) return damaged("a port has no output of its program");
    if (interfaces[i].function != programs[i].name) return damaged("a function has another name than its program");
  }
  return {};
}

}  // namespace

Result<Compilation> openPackage(const std::shared_ptr<const PackageFile>& file, const BlobStore& elsewhere) {
  std::vector<PackageText> variants;
  for (uint32_t variant = 1; variant <= file->variants(); ++variant) {
    AGLOW_TRY(PackageText package, readDescription(*file, variant));
    variants.push_back(std::move(package));
  }
  const auto chosen = std::find_if(variants.rbegin(), variants.rend(), runsHere);
  if (chosen == variants.rend()) return otherProcessor(variants);
  const auto variant = static_cast<uint32_t>(variants.rend() - chosen);

  AGLOW_TRY(const std::span<const std::byte> weights,
            file->find(PackageSection::Weights, 0, PackageFile::Check::Place));
  Result<BlobStore> blobs = parseBlobs({.bytes = weights, .owner = file}, BlobCheck::Table);
  if (!blobs.ok()) return damaged("its weights: " + blobs.error().message);
  for (const auto& [key, tensor] : elsewhere.tensors()) blobs->put(key, tensor);
  AGLOW_TRY(const std::span<const std::byte> text, file->find(PackageSection::Programs, variant));
  Result<std::vector<Program>> programs = parsePrograms(asText(text), *blobs);
  if (!programs.ok()) return damaged("its programs cannot be parsed: " + programs.error().message);
  if (const Status valid = verify(std::span<const Program>(*programs)); !valid.ok())
    return damaged("its programs are wrong: " + valid.error().message);
  AGLOW_OK(checkInterfaces(*programs, chosen->interfaces));
  AGLOW_TRY(const std::span<std::byte> image, file->find(PackageSection::Code, variant));
  AGLOW_TRY(LoadedCode code, codegen::loadImage(image, file));
  if (code.entries.size() != programs->size()) return damaged("it has other code than programs");

  Compilation compilation;
  compilation.programs = *std::move(programs);
  if (!compilation.placed()) return damaged("its programs are not complete");
  compilation.interfaces = chosen->interfaces;
  compilation.backend = runningCode(std::move(code), targetOf(*chosen), true);
  return compilation;
}

std::shared_ptr<const Backend> runningCode(LoadedCode code, std::string target, bool found) {
  return std::make_shared<PackageBackend>(std::move(code), std::move(target), found);
}

bool isPackage(std::string_view path) { return path.ends_with(".aglow"); }

Result<Compilation> openPackage(const std::string& path) {
  AGLOW_TRY(const std::shared_ptr<const PackageFile> file, PackageFile::open(path));
  Result<Compilation> opened = openPackage(file, {});
  if (!opened.ok()) return std::move(opened).error().at(path);
  return opened;
}

Result<PackageFacts> inspectPackage(const std::string& path) {
  AGLOW_TRY(const std::shared_ptr<const PackageFile> file, PackageFile::open(path));
  PackageFacts facts;
  const auto look = [&]() -> Status {
    for (uint32_t variant = 1; variant <= file->variants(); ++variant) {
      AGLOW_TRY(PackageText package, readDescription(*file, variant));
      AGLOW_OK(file->find(PackageSection::Programs, variant));
      AGLOW_TRY(const std::span<const std::byte> code, file->find(PackageSection::Code, variant));
      facts.variants.push_back({.target = targetOf(package),
                                .features = package.features,
                                .codeBytes = static_cast<int64_t>(code.size()),
                                .runsHere = runsHere(package)});
    }
    AGLOW_TRY(const std::span<const std::byte> weights, file->find(PackageSection::Weights));
    facts.weightsBytes = static_cast<int64_t>(weights.size());
    return {};
  };
  if (Status looked = look(); !looked.ok()) return std::move(looked).error().at(path);
  return facts;
}

#ifdef AGLOW_LLVM

namespace {

void copyPlans(std::vector<Instr>& to, const std::vector<Instr>& from) {
  AGLOW_CHECK(to.size() == from.size(), "a program's text has other instructions");
  for (size_t i = 0; i < to.size(); ++i) {
    to[i].plan = from[i].plan;
    copyPlans(to[i].body, from[i].body);
  }
}

}  // namespace

Result<PackageVariant> makeVariant(const Compilation& compilation, BlobStore& blobs, int threads) {
  const auto* cpu = dynamic_cast<const CpuBackend*>(compilation.backend.get());
  if (cpu == nullptr)
    return Error{.code = Code::Usage,
                 .message = fmt::format("backend '{}' makes no machine code", compilation.backend->name()),
                 .where = {},
                 .hint = "--backend cpu"};
  const codegen::Target& target = cpu->target();
  PackageVariant variant{.target = fmt::format("{} {}", target.triple(), target.cpu())};
  AGLOW_TRY(variant.description, printPackage({.triple = target.triple(),
                                               .cpu = target.cpu(),
                                               .features = codegen::checkedFeatures(target),
                                               .interfaces = compilation.interfaces}));
  variant.text = print(compilation.programs, &blobs);
  AGLOW_TRY(variant.programs, parsePrograms(variant.text, blobs));
  const codegen::CodeOptions options{.name = "model", .threads = true, .observed = true};
  std::vector<codegen::MemoryMap> memory;
  std::vector<std::string> entries;
  for (size_t i = 0; i < variant.programs.size(); ++i) {
    copyPlans(variant.programs[i].instrs, compilation.programs[i].instrs);
    memory.emplace_back(variant.programs[i]);
    entries.push_back(codegen::entryName(options, i));
  }
  const std::shared_ptr<ThreadPool> pool = ThreadPool::ofProcess(threads);
  AGLOW_TRY(const std::vector<std::string> objects,
            codegen::generateObjects(variant.programs, memory, target, options, [&](int64_t count, const auto& each) {
              codegen::eachSideBySide(*pool, threads, count, each);
            }));
  AGLOW_TRY(variant.code, codegen::linkImage(objects, entries));
  return variant;
}

void addParts(std::vector<PackagePart>& parts, const PackageVariant& variant, uint32_t number) {
  const auto add = [&](PackageSection section, const std::string& bytes) {
    parts.push_back({section, number, {std::as_bytes(std::span(bytes))}});
  };
  add(PackageSection::Description, variant.description);
  add(PackageSection::Programs, variant.text);
  add(PackageSection::Code, variant.code);
}

void addParts(std::vector<PackagePart>& parts, const BlobPieces& weights) {
  PackagePart& last = parts.emplace_back(PackagePart{PackageSection::Weights, 0, {}});
  last.pieces.push_back(std::as_bytes(std::span(weights.front)));
  last.pieces.insert(last.pieces.end(), weights.payload.begin(), weights.payload.end());
}

Status addPackage(FileSet& files, const std::string& path, std::vector<Compilation> variants) {
  BlobStore blobs;
  std::vector<PackageVariant> made;
  for (const Compilation& compilation : variants) {
    AGLOW_TRY(PackageVariant variant, makeVariant(compilation, blobs, machineThreads()));
    made.push_back(std::move(variant));
  }
  std::vector<PackagePart> parts;
  for (size_t i = 0; i < made.size(); ++i) addParts(parts, made[i], static_cast<uint32_t>(i + 1));
  const BlobPieces weights = piecesOf(blobs);
  addParts(parts, weights);
  return files.add(path, PackageBytes(parts).pieces());
}

#else

Status addPackage(FileSet&, const std::string&, std::vector<Compilation>) {
  return Error{.code = Code::UnsupportedFeature, .message = "this build has no code generator"};
}

#endif

}  // namespace aglow
