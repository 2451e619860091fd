// Protobuf's wire format: the fields of a message, one after the other, as views into the file's bytes.
// Depth, number of messages and every claimed length are checked here, once, for all formats built on protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "import/wire/wire_writer.h"
#include "support/file.h"

namespace aglow::wire {

using Bytes = std::span<const std::byte>;

// How deep messages nest at most; libprotobuf refuses the same, so no working file is deeper.
inline constexpr int kMaxDepth = 100;
// An empty message takes two bytes of a file and some hundred of memory; real models stay below a tenth of this.
inline constexpr int64_t kMaxMessages = 8'000'000;

// How a value is stored; the numbers are protobuf's.
enum class Wire : uint8_t { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

class Reader {
public:
  // Steps to the next field, past whatever the current one holds; false at the end of the message.
  bool next();
  uint32_t field() const { return field_; }

  // The current field's value. One stored in another way than asked for ends the parse.
  int64_t integer() const;
  int32_t integer32() const { return static_cast<int32_t>(integer()); }
  float real() const;
  Bytes bytes() const;
  // The same without a look at them: they may still be in the file only.
  Bytes unread() const;
  std::string text() const;
  // A message within this one; the name is for error messages only.
  Reader message(const char* name) const;
  // Numbers of a repeated field, as its packed form holds them, also when the file does not pack them; not looked at
  // either.
  Bytes elements(Wire kind) const;
  void appendTo(std::vector<int64_t>& values) const;
  void appendTo(std::vector<float>& values) const;

  // The current field as it lies, among those of another message. The bytes are not copied.
  void copyTo(Writer& out) const;

  // Ends the parse with a BadFile error at the current field.
  [[noreturn]] void fail(std::string message) const;

private:
  friend Status parse(const SharedBytes&, const char*, const std::function<void(Reader)>&);
  struct Shared {
    const SharedBytes& file;
    int64_t messages = 0;
  };
  Reader(Bytes message, const char* name, Shared& shared, int depth);
  void step();
  void expect(Wire kind) const;
  void load(Bytes part) const;

  const char* name_;
  Shared* shared_;
  int depth_;
  Bytes rest_;
  const std::byte* at_;  // the current field's first byte
  uint32_t field_ = 0;
  Wire wire_ = Wire::Varint;
  uint64_t varint_ = 0;
  Bytes payload_;
};

// Calls read with the outermost message; BadFile (or LimitReached) when it meets bytes that are not such a message.
Status parse(const SharedBytes& file, const char* name, const std::function<void(Reader)>& read);
inline Status parse(Bytes file, const char* name, const std::function<void(Reader)>& read) {
  return parse(SharedBytes{.bytes = file}, name, read);
}

// How many varints the bytes hold.
int64_t countVarints(Bytes packed);
// Takes the first varint off the bytes; none when it is malformed.
std::optional<uint64_t> takeVarint(Bytes& packed);

}  // namespace aglow::wire
