#include "compile/kept_packages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "backends/cpu/code/cpu_features.h"
#include "backends/cpu/package/image.h"
#include "backends/package_cache.h"
#include "compile/package_parts.h"
#include "compile/package_text.h"
#include "fuse/fuse.h"
#include "graph/lexer.h"
#include "graph/syntax.h"
#include "graph/text.h"
#include "inst/text.h"
#include "quant/profile_file.h"
#include "quant/quantize.h"
#include "support/thread_pool.h"
#include "support/wide_hash.h"

#ifdef AGLOW_LLVM
#include "backends/cpu/cpu.h"
#endif

namespace aglow {

#ifdef AGLOW_LLVM

namespace {

#if defined(__x86_64__) && defined(__linux__)
constexpr bool kHasPackages = true;
#else
constexpr bool kHasPackages = false;
#endif

using Bytes = std::span<const std::byte>;

Bytes bytesOf(const Tensor& tensor) { return {tensor.data(), static_cast<size_t>(tensor.bytes())}; }
Bytes bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

// One for each block, computed side by side: of the digests of its pieces, which are as long for any number of threads.
std::vector<Digest> digestsOf(std::span<const Bytes> blocks) {
  constexpr size_t kPiece = size_t{1} << 20;
  std::vector<Bytes> pieces;
  std::vector<size_t> firsts;
  for (const Bytes block : blocks) {
    firsts.push_back(pieces.size());
    for (size_t at = 0; at < block.size(); at += kPiece)
      pieces.push_back(block.subspan(at, std::min(kPiece, block.size() - at)));
  }
  firsts.push_back(pieces.size());
  std::vector<Digest> digests(pieces.size());
  ThreadPool::ofProcess(1)->run({.units = static_cast<int64_t>(pieces.size())}, [&](int, int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) digests[i] = wideHash(pieces[i]);
    return 0;
  });
  std::vector<Digest> whole;
  for (size_t i = 0; i < blocks.size(); ++i)
    whole.push_back(sha256(
        {reinterpret_cast<const char*>(digests.data() + firsts[i]), (firsts[i + 1] - firsts[i]) * sizeof(Digest)}));
  return whole;
}

// ---------------------------------------------------------------- weights in files of their own

// Below this a file of its own costs more than it saves.
constexpr int64_t kFewBytes = 64 << 10;

struct ElsewhereRow {
  uint64_t key = 0;
  Type type;
  std::string digest;
};

std::string printRow(const ElsewhereRow& row) {
  return fmt::format("0x{:016x} {} {}\n", row.key, row.type.text(), printString(row.digest));
}

Result<std::vector<ElsewhereRow>> parseRows(std::string_view text) {
  Lexer lexer(text);
  std::vector<ElsewhereRow> rows;
  while (lexer.peek().kind != Token::Kind::End) {
    ElsewhereRow& row = rows.emplace_back();
    AGLOW_TRY(const Token key, lexer.take(Token::Kind::Number, "the key of a blob"));
    row.key = parseUnsigned(key.text).value_or(0);
    AGLOW_TRY(row.type, parseType(lexer));
    AGLOW_TRY(Token digest, lexer.take(Token::Kind::String, "the name of a file"));
    row.digest = std::move(digest.value);
  }
  return rows;
}

// Null where the file has another size, or cannot be mapped.
std::shared_ptr<const std::byte> mapped(const FileDescriptor& file, int64_t bytes) {
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || info.st_size != bytes) return nullptr;
  void* base = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  return {static_cast<const std::byte*>(base),
          [bytes](const std::byte* at) { ::munmap(const_cast<std::byte*>(at), static_cast<size_t>(bytes)); }};
}

// All of them as they were written; files that are not so go.
std::optional<BlobStore> readElsewhere(const PackageCache& cache, std::span<const ElsewhereRow> rows) {
  std::vector<Bytes> blocks;
  BlobStore blobs;
  bool whole = true;
  for (const ElsewhereRow& row : rows) {
    const std::string name = row.digest + PackageCache::kWeights;
    const std::shared_ptr<const std::byte> data = mapped(cache.open(name), row.type.bytes());
    if (data == nullptr) {
      cache.remove(name);
      whole = false;
      continue;
    }
    blocks.emplace_back(data.get(), static_cast<size_t>(row.type.bytes()));
    blobs.put(row.key, Tensor(row.type, data.get(), data));
  }
  if (!whole) return std::nullopt;
  const std::vector<Digest> digests = digestsOf(blocks);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (hexadecimal(digests[i]) == rows[i].digest) continue;
    cache.remove(rows[i].digest + PackageCache::kWeights);
    whole = false;
  }
  if (!whole) return std::nullopt;
  return blobs;
}

Result<Compilation> openKept(const PackageCache& cache, const FileDescriptor& kept) {
  AGLOW_TRY(const std::shared_ptr<const PackageFile> file, PackageFile::of(kept));
  AGLOW_OK(file->find(PackageSection::Weights));
  AGLOW_TRY(const Bytes table, file->find(PackageSection::Elsewhere));
  AGLOW_TRY(const auto rows, parseRows({reinterpret_cast<const char*>(table.data()), table.size()}));
  const std::optional<BlobStore> weights = readElsewhere(cache, rows);
  if (!weights) return Error{.code = Code::BadPackage, .message = "its weights are damaged or gone"};
  return openPackage(file, *weights);
}

}  // namespace

std::string cacheKey(const Compilation& compilation, const CompileOptions& options) {
  if (!kHasPackages || options.cache.empty() || !options.stopAfter.empty() || options.verifyEach ||
      (!options.backend.empty() && options.backend != "cpu") || CpuBackend::isNamed())
    return {};
  const codegen::TargetOptions& target = options.target;
  std::string text = fmt::format("{}\n{}\n", packageVersion(), codegen::processorText());
  for (const std::string& word : {target.triple, target.cpu, target.features, target.codeModel})
    text += printString(word) + "\n";
  text +=
      fmt::format("{} {} {} {} {}\n", target.optLevel, target.optSize, options.lanes, options.fuse, options.recompute);
  text += printString(options.startFrom) + "\n";
  for (const std::string& name : options.disabled) text += printString(name) + "\n";
  if (const quant::Request* request = options.quantize.get()) {
    text += fmt::format("{} {} {} {}\n", request->precision->name, request->calibration.row->name,
                        request->calibration.parameter, request->schema->name);
    for (const std::string& name : request->keepFloat) text += printString(name) + "\n";
    text += quant::profileText(request->profile);
  }
  if (options.fusedNodes)
    for (const auto& [node, number] : options.fusedNodes->instrOf)
      text += fmt::format("{} {}\n", printString(node), number);
  const Result<std::string> interfaces =
      printPackage({.triple = {}, .cpu = {}, .features = {}, .interfaces = compilation.interfaces});
  if (!interfaces.ok()) return {};
  BlobStore blobs(BlobStore::Keys::Numbers);
  text += *interfaces;
  text += compilation.module ? print(*compilation.module, &blobs) : print(compilation.programs, &blobs);
  std::vector<Bytes> blocks = {bytesOf(text)};
  for (const auto& [key, tensor] : blobs.tensors()) blocks.push_back(bytesOf(tensor));
  const std::vector<Digest> digests = digestsOf(blocks);
  return hexadecimal(sha256({reinterpret_cast<const char*>(digests.data()), digests.size() * sizeof(Digest)}));
}

std::optional<Compilation> findKept(const std::string& folder, const std::string& key) {
  const PackageCache cache(folder);
  const std::string name = key + PackageCache::kPackage;
  const FileDescriptor kept = cache.open(name);
  if (!kept.valid()) return std::nullopt;
  Result<Compilation> opened = openKept(cache, kept);
  if (opened.ok()) return *std::move(opened);
  cache.remove(name);
  return std::nullopt;
}

namespace {

// Nobody misses what cannot be kept.
void keep(const PackageCache& cache, const std::string& key, const PackageVariant& variant, const BlobStore& blobs) {
  BlobStore inside;
  std::vector<ElsewhereRow> rows;
  std::vector<Bytes> blocks;
  int64_t bytes = static_cast<int64_t>(variant.code.size());
  for (const auto& [number, tensor] : blobs.tensors()) {
    bytes += tensor.bytes();
    if (tensor.bytes() < kFewBytes) {
      inside.put(number, tensor);
      continue;
    }
    rows.push_back({.key = number, .type = tensor.type(), .digest = {}});
    blocks.push_back(bytesOf(tensor));
  }
  if (bytes > cache.limit()) return;
  const std::vector<Digest> digests = digestsOf(blocks);
  std::string table;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].digest = hexadecimal(digests[i]);
    table += printRow(rows[i]);
    const std::string name = rows[i].digest + PackageCache::kWeights;
    struct stat info{};
    const FileDescriptor there = cache.open(name);
    const bool known =
        there.valid() && ::fstat(there.get(), &info) == 0 && info.st_size == static_cast<int64_t>(blocks[i].size());
    if (!known && !cache.keep(name, std::span(&blocks[i], 1))) return;
  }
  std::vector<PackagePart> parts;
  addParts(parts, variant, 1);
  parts.push_back({PackageSection::Elsewhere, 0, {bytesOf(table)}});
  const BlobPieces weights = piecesOf(inside);
  addParts(parts, weights);
  cache.keep(key + PackageCache::kPackage, PackageBytes(parts).pieces());
  cache.evict();
}

// The code in memory of its own.
Result<codegen::LoadedCode> loadCode(const std::string& code) {
  const size_t bytes = code.size();
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return Error{.code = Code::OutOfMemory, .message = "there is no memory for the code"};
  const std::shared_ptr<std::byte> owner(static_cast<std::byte*>(base),
                                         [bytes](std::byte* at) { ::munmap(at, bytes); });
  std::memcpy(base, code.data(), bytes);
  return codegen::loadImage({owner.get(), bytes}, owner);
}

}  // namespace

Result<std::unique_ptr<Executable>> loadAndKeep(Compilation compilation, const BackendOptions& options) {
  const PackageCache cache(compilation.cache);
  const auto* cpu = dynamic_cast<const CpuBackend*>(compilation.backend.get());
  AGLOW_OK(checkMemory(compilation.programs, options));
  if (cpu != nullptr && cpu->checkHost().ok() && cache.prepare()) {
    BlobStore blobs(BlobStore::Keys::Numbers);
    Result<PackageVariant> made = makeVariant(compilation, blobs, options.threads);
    // Code that the package's own linker cannot take runs all the same.
    if (!made.ok() && made.error().code != Code::UnsupportedFeature) return std::move(made).error();
    if (made.ok()) {
      keep(cache, compilation.cacheKey, *made, blobs);
      AGLOW_TRY(codegen::LoadedCode code, loadCode(made->code));
      return runningCode(std::move(code), made->target, false)->compile(std::move(made->programs), options);
    }
  }
  return compilation.backend->compile(std::move(compilation.programs), options);
}

#else

std::string cacheKey(const Compilation&, const CompileOptions&) { return {}; }

std::optional<Compilation> findKept(const std::string&, const std::string&) { return std::nullopt; }

Result<std::unique_ptr<Executable>> loadAndKeep(Compilation compilation, const BackendOptions& options) {
  return compilation.backend->compile(std::move(compilation.programs), options);
}

#endif

}  // namespace aglow
