// Blobs in memory and in files.
#include "graph/blobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/syntax.h"
#include "support/sizes.h"

namespace aglow {

uint64_t BlobStore::add(const Tensor& tensor) {
  if (keys_ == Keys::Numbers) {
    tensors_.emplace(tensors_.size(), tensor);
    return tensors_.size() - 1;
  }
  for (uint64_t key = tensor.hash();; ++key) {
    const auto [it, fresh] = tensors_.try_emplace(key, tensor);
    if (fresh || it->second == tensor) return key;
  }
}

const Tensor* BlobStore::find(uint64_t key) const {
  const auto it = tensors_.find(key);
  return it == tensors_.end() ? nullptr : &it->second;
}

namespace {

struct Header {
  char magic[8] = {'a', 'g', 'l', 'o', 'w', 'b', 'l', 'b'};
  uint32_t version = 1;
  uint32_t count = 0;
  uint64_t tableBytes = 0;
};
static_assert(sizeof(Header) == 24, "the header has no gaps");

constexpr int64_t kAlignment = Tensor::kAlignment;

Error bad(std::string message) { return {.code = Code::BadFile, .message = std::move(message)}; }

std::string tableLine(uint64_t key, const Type& type, int64_t offset) {
  return fmt::format("0x{:016x} {} at {:020}\n", key, type.text(), offset);
}

int64_t tableEnd(const std::string& table) { return static_cast<int64_t>(sizeof(Header) + table.size()); }

Result<Header> readHeader(const SharedBytes& file) {
  const std::span<const std::byte> bytes = file.bytes;
  Header header;
  AGLOW_OK(file.load(bytes.first(std::min(bytes.size(), sizeof header))));
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), header.magic, sizeof header.magic) != 0)
    return bad("expected a file of blobs, which starts with 'aglowblb'");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != 1) return bad(fmt::format("expected version 1, got {}", header.version));
  if (header.tableBytes > bytes.size() - sizeof header) return bad("the table reaches past the end of the file");
  return header;
}

struct Row {
  uint64_t key = 0;
  Type type;
  int64_t offset = 0;
};

Result<Row> parseRow(Lexer& lexer) {
  Row row;
  AGLOW_TRY(const Token key, lexer.take(Token::Kind::Number, "the key of a blob"));
  const auto number = parseUnsigned(key.text);
  if (!number) return textError(key, "expected the key of a blob");
  row.key = *number;
  AGLOW_TRY(row.type, parseType(lexer));
  AGLOW_OK(lexer.expect("at"));
  AGLOW_TRY(row.offset, lexer.integer("an offset"));
  return row;
}

bool allZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// In place where the bytes are in memory.
Result<Tensor> readPayload(const SharedBytes& file, const Row& row) {
  const auto bytes = file.bytes.subspan(static_cast<size_t>(row.offset), static_cast<size_t>(row.type.bytes()));
  if (!file.file) return Tensor(row.type, bytes.data(), file.owner);
  Tensor tensor(row.type);
  AGLOW_OK(file.copy(bytes, tensor.mutableData()));
  return tensor;
}

// `end` is where the bytes before a tensor end.
Result<std::map<uint64_t, Tensor>> readPayloads(const SharedBytes& file, const Header& header, BlobCheck check) {
  const auto table = file.bytes.subspan(sizeof header, header.tableBytes);
  AGLOW_OK(file.load(table));
  Lexer lexer({reinterpret_cast<const char*>(table.data()), table.size()});
  std::map<uint64_t, Tensor> tensors;
  const auto size = static_cast<int64_t>(file.bytes.size());
  auto end = static_cast<int64_t>(sizeof header + header.tableBytes);
  for (uint32_t i = 0; i < header.count; ++i) {
    Result<Row> row = parseRow(lexer);
    if (!row.ok()) return bad(fmt::format("row {} of the table: {}", i, row.error().message));
    const auto fault = [&](std::string_view what) { return bad(fmt::format("blob 0x{:016x} {}", row->key, what)); };
    if (!tensors.empty() && row->key <= tensors.rbegin()->first) return fault("breaks the order of keys");
    if (row->offset != alignUp(end, kAlignment)) return fault("does not follow the one before it");
    if (row->offset > size || row->type.bytes() > size - row->offset) return fault("reaches past the end of the file");
    if (check == BlobCheck::Bytes) {
      const auto gap = file.bytes.subspan(static_cast<size_t>(end), static_cast<size_t>(row->offset - end));
      AGLOW_OK(file.load(gap));
      if (!allZero(gap)) return fault("follows a gap that is not zero");
    }
    end = row->offset + row->type.bytes();
    AGLOW_TRY(Tensor tensor, readPayload(file, *row));
    // Only where another tensor has the same hash is a key not the hash itself.
    if (check == BlobCheck::Bytes && row->key != tensor.hash() && !tensors.contains(row->key - 1))
      return fault("has other bytes than it was written with");
    tensors.emplace(row->key, std::move(tensor));
  }
  if (lexer.peek().kind != Token::Kind::End) return bad("the table has more rows than the header says");
  if (end != size) return bad(fmt::format("expected the file to end at byte {}, got {}", end, size));
  return tensors;
}

}  // namespace

BlobPieces piecesOf(const BlobStore& blobs) {
  // Offsets have a fixed width, so the table's length is known before them.
  std::string table;
  for (const auto& [key, tensor] : blobs.tensors()) table += tableLine(key, tensor.type(), 0);
  int64_t end = tableEnd(table);
  table.clear();
  static constexpr std::byte kZeros[kAlignment] = {};
  BlobPieces pieces;
  for (const auto& [key, tensor] : blobs.tensors()) {
    const int64_t offset = alignUp(end, kAlignment);
    table += tableLine(key, tensor.type(), offset);
    pieces.payload.emplace_back(kZeros, static_cast<size_t>(offset - end));
    pieces.payload.emplace_back(tensor.data(), static_cast<size_t>(tensor.bytes()));
    end = offset + tensor.bytes();
  }
  const Header header{.count = static_cast<uint32_t>(blobs.tensors().size()), .tableBytes = table.size()};
  pieces.front.assign(reinterpret_cast<const char*>(&header), sizeof header);
  pieces.front += table;
  return pieces;
}

Status addBlobs(FileSet& files, const std::string& path, const BlobStore& blobs) {
  const BlobPieces blob = piecesOf(blobs);
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(blob.front))};
  pieces.insert(pieces.end(), blob.payload.begin(), blob.payload.end());
  return files.add(path, pieces);
}

Status writeBlobs(const std::string& path, const BlobStore& blobs) {
  return writeTogether([&](FileSet& files) { return addBlobs(files, path, blobs); });
}

Result<BlobStore> parseBlobs(const SharedBytes& file, BlobCheck check) {
  AGLOW_TRY(const Header header, readHeader(file));
  BlobStore store;
  AGLOW_TRY(store.tensors_, readPayloads(file, header, check));
  return store;
}

Result<BlobStore> readBlobs(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, openFile(path));
  Result<BlobStore> store = parseBlobs(file);
  if (!store.ok()) return std::move(store).error().at(path);
  return store;
}

}  // namespace aglow
