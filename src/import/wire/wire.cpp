// Tags and varints are protozero's. Lengths are not: its reader cuts them to 32 bits, so that a claim of 2^62 bytes
// would pass for an empty field.
#include "import/wire/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <protozero/pbf_reader.hpp>

namespace aglow::wire {

static_assert(std::endian::native == std::endian::little, "fixed-width values are read in place");

namespace {

// Leaves the nested readers at once; parse() turns it into a Status.
struct Fault : std::exception {
  explicit Fault(Error e) : error(std::move(e)) {}
  Error error;
};

const char* chars(const std::byte* p) { return reinterpret_cast<const char*>(p); }
const std::byte* bytesAt(const char* p) { return reinterpret_cast<const std::byte*>(p); }
protozero::data_view view(Bytes b) { return {chars(b.data()), b.size()}; }
const char* endOf(Bytes b) { return chars(b.data() + b.size()); }

template <class T>
T fixed(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

size_t fixedSize(Wire kind) { return kind == Wire::Fixed32 ? 4 : kind == Wire::Fixed64 ? 8 : 1; }

const char* wireName(Wire kind) {
  switch (kind) {
    case Wire::Varint:
      return "a varint";
    case Wire::Fixed64:
      return "8 bytes";
    case Wire::Length:
      return "a length and bytes";
    case Wire::Fixed32:
      break;
  }
  return "4 bytes";
}

}  // namespace

Reader::Reader(Bytes message, const char* name, Shared& shared, int depth)
    : name_(name), shared_(&shared), depth_(depth), rest_(message), at_(message.data()) {}

void Reader::fail(std::string message) const {
  const std::string field = field_ == 0 ? std::string(name_) : fmt::format("{} field {}", name_, field_);
  throw Fault({Code::BadFile,
               fmt::format("malformed protobuf at byte {}, {}: {}", at_ - shared_->file.bytes.data(), field, message)});
}

bool Reader::next() {
  if (rest_.empty()) return false;
  at_ = rest_.data();
  field_ = 0;
  try {
    step();
  } catch (const protozero::end_of_buffer_exception&) {
    fail("the message ends in the middle of a field");
  } catch (const protozero::exception&) {
    fail("no protobuf field starts here");
  }
  return true;
}

void Reader::load(Bytes part) const {
  if (Status loaded = shared_->file.load(part); !loaded.ok()) throw Fault(std::move(loaded).error());
}

void Reader::step() {
  // A tag, and a varint, a length or a number of fixed size.
  constexpr size_t kLongest = 32;
  load(rest_.first(std::min(rest_.size(), kLongest)));
  protozero::pbf_reader tag(view(rest_));
  tag.next();
  field_ = tag.tag();
  wire_ = static_cast<Wire>(tag.wire_type());
  const char* p = tag.data().data();
  const char* const end = endOf(rest_);
  uint64_t size = fixedSize(wire_);
  if (wire_ == Wire::Varint) {
    const char* const first = p;
    varint_ = protozero::decode_varint(&p, end);
    size = static_cast<uint64_t>(p - first);
    p = first;
  } else if (wire_ == Wire::Length) {
    size = protozero::decode_varint(&p, end);
  }
  const auto left = static_cast<uint64_t>(end - p);
  if (size > left)
    fail(fmt::format("the file is truncated or corrupted: {} bytes are claimed, {} are left", size, left));
  payload_ = {bytesAt(p), static_cast<size_t>(size)};
  rest_ = {bytesAt(p + size), static_cast<size_t>(left - size)};
}

void Reader::expect(Wire kind) const {
  if (wire_ != kind) fail(fmt::format("expected {}, got {}", wireName(kind), wireName(wire_)));
}

int64_t Reader::integer() const {
  expect(Wire::Varint);
  return static_cast<int64_t>(varint_);
}

float Reader::real() const {
  expect(Wire::Fixed32);
  return fixed<float>(payload_.data());
}

Bytes Reader::unread() const {
  expect(Wire::Length);
  return payload_;
}

Bytes Reader::bytes() const {
  load(unread());
  return payload_;
}

std::string Reader::text() const {
  const Bytes b = bytes();
  return {chars(b.data()), b.size()};
}

Reader Reader::message(const char* name) const {
  expect(Wire::Length);
  if (depth_ >= kMaxDepth) fail(fmt::format("messages nest deeper than {}", kMaxDepth));
  if (++shared_->messages > kMaxMessages)
    throw Fault({Code::LimitReached, fmt::format("the file holds more than {} messages", kMaxMessages)});
  return {payload_, name, *shared_, depth_ + 1};
}

Bytes Reader::elements(Wire kind) const {
  if (wire_ != Wire::Length) {
    expect(kind);
    return payload_;
  }
  if (payload_.size() % fixedSize(kind) != 0)
    fail(fmt::format("{} bytes are not a whole number of elements", payload_.size()));
  return payload_;
}

void Reader::copyTo(Writer& out) const {
  const Bytes whole(at_, rest_.data());
  load(whole);
  out.borrowed(whole);
}

void Reader::appendTo(std::vector<int64_t>& values) const {
  Bytes packed = elements(Wire::Varint);
  load(packed);
  while (!packed.empty()) {
    const auto value = takeVarint(packed);
    if (!value) fail("a number is malformed");
    values.push_back(static_cast<int64_t>(*value));
  }
}

void Reader::appendTo(std::vector<float>& values) const {
  const Bytes packed = elements(Wire::Fixed32);
  load(packed);
  for (size_t i = 0; i < packed.size(); i += sizeof(float)) values.push_back(fixed<float>(packed.data() + i));
}

Status parse(const SharedBytes& file, const char* name, const std::function<void(Reader)>& read) {
  Reader::Shared shared{file};
  try {
    read(Reader(file.bytes, name, shared, 1));
  } catch (Fault& fault) {
    return std::move(fault.error);
  }
  return {};
}

int64_t countVarints(Bytes packed) {
  return std::count_if(packed.begin(), packed.end(), [](std::byte b) { return (b & std::byte{0x80}) == std::byte{0}; });
}

std::optional<uint64_t> takeVarint(Bytes& packed) {
  const char* p = chars(packed.data());
  try {
    const uint64_t value = protozero::decode_varint(&p, endOf(packed));
    packed = packed.subspan(static_cast<size_t>(bytesAt(p) - packed.data()));
    return value;
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
}

}  // namespace aglow::wire
