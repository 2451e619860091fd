// The file (little endian): "aglow checkpoint", version (u32), bytes of the text (u32), SHA-256 of the text; the text,
// with empty lines up to a multiple of 64; a file of blobs (graph/blobs.h), which checks itself.
#include "train/checkpoint.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "graph/blobs.h"
#include "graph/lexer.h"
#include "graph/syntax.h"
#include "support/sha256.h"

namespace aglow {

namespace {

constexpr std::string_view kMagic = "aglow checkpoint";
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64;

struct Header {
  char magic[16];
  uint32_t version, textBytes;
  Digest digest;
};
static_assert(sizeof(Header) == 56);

Error damaged(std::string message) {
  return {.code = Code::BadFile, .message = "the checkpoint is damaged: " + std::move(message)};
}

// The numbers by name, as bits.
template <class Position, class F>
void forEachNumber(Position& p, const F& f) {
  f("seed", p.seed);
  f("step", p.step);
  f("epoch", p.epoch);
  f("step_of_epoch", p.stepOfEpoch);
  f("first_epoch", p.firstEpoch);
  f("first_step", p.firstStep);
  f("loss_sum", p.lossSum);
  f("loss_samples", p.lossSamples);
  f("best", p.best);
  f("best_epoch", p.bestEpoch);
}

std::string textOf(const Checkpoint& checkpoint, BlobStore& blobs) {
  std::string text =
      fmt::format("model {}\nsettings {}\n", printString(checkpoint.model), printString(checkpoint.settings));
  forEachNumber(checkpoint.position, [&](const char* name, const auto& value) {
    text += fmt::format("{} 0x{:016x}\n", name, std::bit_cast<uint64_t>(value));
  });
  const auto add = [&](const char* what, const std::map<std::string, Tensor>& tensors) {
    for (const auto& [name, tensor] : tensors)
      text += fmt::format("{} {} 0x{:016x}\n", what, printString(name), blobs.add(tensor));
  };
  add("state", checkpoint.state);
  add("kept", checkpoint.best);
  text.append((kAlignment - (sizeof(Header) + text.size()) % kAlignment) % kAlignment, '\n');
  return text;
}

Result<Checkpoint> parseText(std::string_view text, const BlobStore& blobs) {
  Checkpoint checkpoint;
  Lexer lexer(text);
  while (lexer.peek().kind != Token::Kind::End) {
    AGLOW_TRY(const Token key, lexer.take(Token::Kind::Word, "a word"));
    if (key.text == "model" || key.text == "settings") {
      AGLOW_TRY(Token value, lexer.take(Token::Kind::String, "a text"));
      (key.text == "model" ? checkpoint.model : checkpoint.settings) = std::move(value.value);
      continue;
    }
    if (key.text == "state" || key.text == "kept") {
      AGLOW_TRY(Token name, lexer.take(Token::Kind::String, "a name"));
      AGLOW_TRY(const Token number, lexer.take(Token::Kind::Number, "the key of a blob"));
      const Tensor* tensor = blobs.find(parseUnsigned(number.text).value_or(0));
      if (tensor == nullptr) return damaged(fmt::format("there are no bytes for '{}'", name.value));
      (key.text == "state" ? checkpoint.state : checkpoint.best).emplace(std::move(name.value), *tensor);
      continue;
    }
    AGLOW_TRY(const Token number, lexer.take(Token::Kind::Number, "a number"));
    const uint64_t bits = parseUnsigned(number.text).value_or(0);
    bool known = false;
    forEachNumber(checkpoint.position, [&]<class T>(const char* name, T& value) {
      if (key.text != name) return;
      value = std::bit_cast<T>(bits);
      known = true;
    });
    if (!known) return damaged(fmt::format("'{}' has no meaning", key.text));
  }
  return checkpoint;
}

Result<Checkpoint> parse(const SharedBytes& file) {
  const std::span<const std::byte> bytes = file.bytes;
  Header header{};
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return Error{.code = Code::BadFile, .message = "the file is no checkpoint"};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kVersion)
    return Error{.code = Code::BadFile,
                 .message = fmt::format("the checkpoint has version {}; expected {}", header.version, kVersion)};
  const size_t end = sizeof header + header.textBytes;
  if (end > bytes.size()) return damaged(fmt::format("expected at least {} bytes, got {}", end, bytes.size()));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header, header.textBytes);
  if (sha256(text) != header.digest) return damaged("its text is not what was written");
  auto blobs = parseBlobs({.bytes = bytes.subspan(end), .owner = file.owner, .file = file.file});
  if (!blobs.ok()) return damaged(blobs.error().message);
  return parseText(text, *blobs);
}

}  // namespace

Status writeCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  BlobStore blobs;
  const std::string text = textOf(checkpoint, blobs);
  Header header{
      .magic = {}, .version = kVersion, .textBytes = static_cast<uint32_t>(text.size()), .digest = sha256(text)};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  std::string front(reinterpret_cast<const char*>(&header), sizeof header);
  const BlobPieces tensors = piecesOf(blobs);
  front += text + tensors.front;
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(front))};
  pieces.insert(pieces.end(), tensors.payload.begin(), tensors.payload.end());
  return writeFileAtomically(path, pieces);
}

Result<Checkpoint> readCheckpoint(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  auto checkpoint = parse(file);
  if (!checkpoint.ok()) return std::move(checkpoint).error().at(path);
  return checkpoint;
}

}  // namespace aglow
