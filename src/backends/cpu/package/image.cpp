#include "backends/cpu/package/image.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "backends/cpu/package/image_format.h"
#include "support/check.h"
#include "support/quote.h"

namespace aglow::codegen {

namespace {

Error damaged(std::string_view what) {
  return {.code = Code::BadPackage, .message = fmt::format("the code of the package {}", what)};
}

// Rows of a table, checked to lie in the block.
template <class Row>
Result<std::span<const Row>> takeRows(std::span<const std::byte>& rest, uint64_t count) {
  if (count > rest.size() / sizeof(Row)) return damaged("has tables that reach past its end");
  const std::span<const std::byte> bytes = rest.first(count * sizeof(Row));
  rest = rest.subspan(bytes.size());
  return std::span<const Row>(reinterpret_cast<const Row*>(bytes.data()), count);
}

bool isWithin(uint64_t at, uint64_t bytes, uint64_t from, uint64_t size) {
  return at >= from && at - from <= size && bytes <= size - (at - from);
}

struct Tables {
  ImageHeader header;
  std::span<const ImageMove> moves;
  std::span<const ImageImport> imports;
  std::span<const ImageEntry> entries;
  std::span<const char> names;
};

Result<Tables> readTables(std::span<const std::byte> block) {
  Tables tables;
  ImageHeader& header = tables.header;
  if (block.size() < sizeof header || std::memcmp(block.data(), header.magic, sizeof header.magic) != 0)
    return damaged("does not begin as it should");
  std::memcpy(&header, block.data(), sizeof header);
  const auto onPage = [](uint64_t at) { return at % kImagePage == 0; };
  if (header.bytes != block.size() || !onPage(header.bytes) || !onPage(header.textAt) || !onPage(header.tablesAt) ||
      !isWithin(header.textAt, header.textBytes, 0, header.bytes) || header.tablesAt < header.textAt ||
      header.textBytes > header.tablesAt - header.textAt ||
      !isWithin(header.tablesAt, header.tableBytes, 0, header.bytes))
    return damaged("has parts that contradict its size");
  std::span<const std::byte> rest = block.first(header.textAt).subspan(sizeof header);
  AGLOW_TRY(tables.moves, takeRows<ImageMove>(rest, header.moves));
  AGLOW_TRY(tables.imports, takeRows<ImageImport>(rest, header.imports));
  AGLOW_TRY(tables.entries, takeRows<ImageEntry>(rest, header.entries));
  AGLOW_TRY(tables.names, takeRows<char>(rest, header.nameBytes));
  const auto isSlot = [&](uint64_t at) {
    return at % sizeof(uint64_t) == 0 && isWithin(at, sizeof(uint64_t), header.tablesAt, header.tableBytes);
  };
  for (const ImageMove& move : tables.moves)
    if (!isSlot(move.at) || move.to > header.bytes) return damaged("has an address outside of itself");
  for (const ImageImport& import : tables.imports)
    if (!isSlot(import.at) || import.name >= tables.names.size()) return damaged("has a name outside of itself");
  if (!tables.names.empty() && tables.names.back() != '\0') return damaged("has a name without an end");
  for (const ImageEntry entry : tables.entries)
    if (!isWithin(entry, 1, header.textAt, header.textBytes)) return damaged("begins outside of itself");
  return tables;
}

Error refused(const char* what) {
  return {.code = Code::OutOfMemory, .message = fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

// A block that may not be run where it lies, as on a file system without that right, is copied.
Result<std::span<std::byte>> copied(std::span<const std::byte> block, std::shared_ptr<const void>& owner) {
  void* memory = ::mmap(nullptr, block.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refused("no memory for code");
  std::memcpy(memory, block.data(), block.size());
  owner = std::shared_ptr<const void>(
      memory, [bytes = block.size()](const void* at) { ::munmap(const_cast<void*>(at), bytes); });
  return std::span<std::byte>(static_cast<std::byte*>(memory), block.size());
}

}  // namespace

Result<LoadedCode> loadImage(std::span<std::byte> block, std::shared_ptr<const void> owner) {
  AGLOW_CHECK(reinterpret_cast<uintptr_t>(block.data()) % kImagePage == 0, "code begins within a page");
  AGLOW_TRY(Tables tables, readTables(block));
  const auto allow = [&](uint64_t at, uint64_t bytes, int rights) {
    return bytes == 0 || ::mprotect(block.data() + at, bytes, rights) == 0;
  };
  const ImageHeader& header = tables.header;
  if (!allow(header.textAt, header.textBytes, PROT_READ | PROT_EXEC)) {
    AGLOW_TRY(block, copied(block, owner));
    AGLOW_TRY(tables, readTables(block));
    if (!allow(header.textAt, header.textBytes, PROT_READ | PROT_EXEC)) return refused("code may not be run");
  }
  if (!allow(header.tablesAt, header.tableBytes, PROT_READ | PROT_WRITE)) return refused("no memory for code");
  const auto put = [&](uint64_t at, const void* address) { std::memcpy(block.data() + at, &address, sizeof address); };
  for (const ImageMove& move : tables.moves) put(move.at, block.data() + move.to);
  for (const ImageImport& import : tables.imports) {
    const char* name = tables.names.data() + import.name;
    const void* function = ::dlsym(RTLD_DEFAULT, name);
    if (function == nullptr)
      return Error{
          .code = Code::OtherPackage,
          .message = fmt::format("its code needs the function {}, which is not in this process", quoted(name))};
    put(import.at, function);
  }
  if (!allow(header.tablesAt, header.tableBytes, PROT_READ)) return refused("code cannot be protected");
  LoadedCode code{.entries = {}, .owner = std::move(owner)};
  for (const ImageEntry entry : tables.entries)
    code.entries.push_back(reinterpret_cast<LoadedCode::Entry*>(block.data() + entry));
  return code;
}

}  // namespace aglow::codegen
