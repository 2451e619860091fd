// Protobuf's wire format, written: the fields of a message in the order of the calls. Large payloads are not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aglow::wire {

class Writer {
public:
  void integer(uint32_t field, int64_t value);
  void real(uint32_t field, float value);
  void text(uint32_t field, std::string_view value);
  // Bytes that outlive the writer.
  void borrowed(uint32_t field, std::span<const std::byte> bytes);
  // Whole fields that outlive the writer.
  void borrowed(std::span<const std::byte> fields);
  void message(uint32_t field, const Writer& inner);
  void packed(uint32_t field, std::span<const int64_t> values);
  void packed(uint32_t field, std::span<const float> values);

  size_t size() const { return size_; }
  // All bytes, piece by piece; they live as long as the writer.
  std::vector<std::span<const std::byte>> pieces() const;

private:
  // Own bytes, then borrowed ones.
  struct Chunk {
    std::string own;
    std::span<const std::byte> borrowed;
  };

  void varint(uint64_t value);
  void header(uint32_t field, uint32_t wire) { varint(uint64_t{field} << 3 | wire); }
  void append(std::string_view bytes);

  std::vector<Chunk> chunks_;
  size_t size_ = 0;
};

}  // namespace aglow::wire
