#include "import/wire/wire_writer.h"

#include <bit>

#include "import/wire/wire.h"

namespace aglow::wire {

static_assert(std::endian::native == std::endian::little, "fixed-width values are written as they lie");

namespace {

constexpr auto kVarint = static_cast<uint32_t>(Wire::Varint), kLength = static_cast<uint32_t>(Wire::Length),
               kFixed32 = static_cast<uint32_t>(Wire::Fixed32);

}  // namespace

void Writer::append(std::string_view bytes) {
  if (chunks_.empty() || !chunks_.back().borrowed.empty()) chunks_.emplace_back();
  chunks_.back().own += bytes;
  size_ += bytes.size();
}

void Writer::varint(uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(value | 0x80);
  bytes[count++] = static_cast<char>(value);
  append({bytes, count});
}

void Writer::integer(uint32_t field, int64_t value) {
  header(field, kVarint);
  varint(static_cast<uint64_t>(value));
}

void Writer::real(uint32_t field, float value) {
  header(field, kFixed32);
  append({reinterpret_cast<const char*>(&value), sizeof value});
}

void Writer::text(uint32_t field, std::string_view value) {
  header(field, kLength);
  varint(value.size());
  append(value);
}

void Writer::borrowed(uint32_t field, std::span<const std::byte> bytes) {
  header(field, kLength);
  varint(bytes.size());
  if (bytes.empty()) return;
  chunks_.back().borrowed = bytes;
  size_ += bytes.size();
}

void Writer::borrowed(std::span<const std::byte> fields) {
  if (fields.empty()) return;
  if (chunks_.empty() || !chunks_.back().borrowed.empty()) chunks_.emplace_back();
  chunks_.back().borrowed = fields;
  size_ += fields.size();
}

void Writer::message(uint32_t field, const Writer& inner) {
  header(field, kLength);
  varint(inner.size());
  for (const Chunk& chunk : inner.chunks_) {
    append(chunk.own);
    if (chunk.borrowed.empty()) continue;
    chunks_.back().borrowed = chunk.borrowed;
    size_ += chunk.borrowed.size();
  }
}

void Writer::packed(uint32_t field, std::span<const int64_t> values) {
  Writer list;
  for (const int64_t value : values) list.varint(static_cast<uint64_t>(value));
  message(field, list);
}

void Writer::packed(uint32_t field, std::span<const float> values) {
  text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

std::vector<std::span<const std::byte>> Writer::pieces() const {
  std::vector<std::span<const std::byte>> all;
  for (const Chunk& chunk : chunks_) {
    if (!chunk.own.empty()) all.push_back(std::as_bytes(std::span(chunk.own)));
    if (!chunk.borrowed.empty()) all.push_back(chunk.borrowed);
  }
  return all;
}

}  // namespace aglow::wire
