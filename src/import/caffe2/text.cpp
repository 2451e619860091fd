// A recursive descent over the fields of a message; what a field is called and how it is stored is a table.
#include "import/caffe2/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "import/wire/wire.h"
#include "support/quote.h"
#include "support/suggest.h"

namespace aglow::caffe2 {

namespace {

// Skipped: a value or message of any form that says nothing about what a net computes.
enum class Form : uint8_t { Int, Float, Bytes, Message, Skipped };

struct Field {
  std::string_view name;
  uint32_t number;
  Form form;
  int message = -1;  // index into kMessages
};

struct Message {
  std::string_view name;
  std::span<const Field> fields;
};

enum MessageIndex : int { kNetDef, kOperatorDef, kArgument, kTensorProto };

constexpr Field kNetFields[] = {
    {"name", 1, Form::Bytes},           {"op", 2, Form::Message, kOperatorDef}, {"type", 3, Form::Bytes},
    {"num_workers", 4, Form::Int},      {"device_option", 5, Form::Skipped},    {"arg", 6, Form::Message, kArgument},
    {"external_input", 7, Form::Bytes}, {"external_output", 8, Form::Bytes},    {"partition_info", 9, Form::Skipped},
};
constexpr Field kOperatorFields[] = {
    {"input", 1, Form::Bytes},       {"output", 2, Form::Bytes},           {"name", 3, Form::Bytes},
    {"type", 4, Form::Bytes},        {"arg", 5, Form::Message, kArgument}, {"device_option", 6, Form::Skipped},
    {"engine", 7, Form::Bytes},      {"control_input", 8, Form::Bytes},    {"is_gradient_op", 9, Form::Int},
    {"debug_info", 10, Form::Bytes}, {"domain", 11, Form::Bytes},          {"op_version", 12, Form::Bytes},
};
constexpr Field kArgumentFields[] = {
    {"name", 1, Form::Bytes},
    {"f", 2, Form::Float},
    {"i", 3, Form::Int},
    {"s", 4, Form::Bytes},
    {"floats", 5, Form::Float},
    {"ints", 6, Form::Int},
    {"strings", 7, Form::Bytes},
    {"n", 8, Form::Message, kNetDef},
    {"nets", 9, Form::Message, kNetDef},
    {"t", 10, Form::Message, kTensorProto},
    {"tensors", 11, Form::Message, kTensorProto},
    {"qtensors", 12, Form::Skipped},
};
constexpr Field kTensorFields[] = {
    {"dims", 1, Form::Int},
    {"data_type", 2, Form::Int},
    {"float_data", 3, Form::Skipped},
    {"int32_data", 4, Form::Skipped},
    {"byte_data", 5, Form::Skipped},
    {"string_data", 6, Form::Skipped},
    {"name", 7, Form::Bytes},
    {"device_detail", 8, Form::Skipped},
    {"double_data", 9, Form::Skipped},
    {"int64_data", 10, Form::Skipped},
    {"segment", 11, Form::Skipped},
    {"raw_data", 13, Form::Skipped},
};
constexpr Message kMessages[] = {{"NetDef", kNetFields},
                                 {"OperatorDef", kOperatorFields},
                                 {"Argument", kArgumentFields},
                                 {"TensorProto", kTensorFields}};

// Numbers that the text may give by name.
struct Named {
  std::string_view name;
  int64_t value;
};
constexpr Named kNamed[] = {
    {"true", 1},   {"false", 0}, {"True", 1},   {"False", 0},    {"UNDEFINED", 0}, {"FLOAT", 1},
    {"INT32", 2},  {"BYTE", 3},  {"STRING", 4}, {"BOOL", 5},     {"UINT8", 6},     {"INT8", 7},
    {"UINT16", 8}, {"INT16", 9}, {"INT64", 10}, {"FLOAT16", 12}, {"DOUBLE", 13},
};

void putVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void putTag(std::string& out, uint32_t field, wire::Wire kind) {
  putVarint(out, uint64_t{field} << 3 | static_cast<uint64_t>(kind));
}

void putBytes(std::string& out, uint32_t field, std::string_view bytes) {
  putTag(out, field, wire::Wire::Length);
  putVarint(out, bytes.size());
  out += bytes;
}

bool isWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '+' || c == '-';
}

struct Fault : std::exception {
  explicit Fault(Error e) : error(std::move(e)) {}
  Error error;
};

class Parser {
public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::string net() {
    std::string out = message(kNetDef, '\0', 1);
    skipSpace();
    if (at_ != text_.size()) fail(fmt::format("expected a field, got {}", quoted(text_.substr(at_, 1))));
    return out;
  }

  // The name of the first field, or nothing.
  std::string_view firstWord() {
    skipSpace();
    const size_t from = at_;
    while (at_ < text_.size() && isWordChar(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  char peek() {
    skipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

private:
  [[noreturn]] void fail(const std::string& message, std::string hint = {}) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<int64_t>(at_), '\n');
    throw Fault({.code = Code::BadFile,
                 .message = fmt::format("line {}: {}", line, message),
                 .where = {},
                 .hint = std::move(hint)});
  }

  void skipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (std::isspace(static_cast<unsigned char>(c)) != 0)
        ++at_;
      else
        return;
    }
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c))
      fail(at_ == text_.size() ? fmt::format("the text ends where '{}' is expected", c)
                               : fmt::format("expected '{}', got {}", c, quoted(text_.substr(at_, 1))));
  }

  std::string_view word() {
    const std::string_view found = firstWord();
    if (found.empty())
      fail(at_ == text_.size() ? std::string("the text ends in the middle of a field")
                               : fmt::format("expected a name or a number, got {}", quoted(text_.substr(at_, 1))));
    return found;
  }

  // Fields up to the closing bracket ('\0': up to the end of the text).
  std::string message(int index, char close, int depth) {
    if (depth > wire::kMaxDepth) fail(fmt::format("messages nest deeper than {}", wire::kMaxDepth));
    std::string out;
    while (peek() != close) {
      const Field& field = fieldOf(kMessages[index], word());
      const bool colon = take(':');
      if (!colon && field.form != Form::Message && field.form != Form::Skipped) expect(':');
      if (colon && take('[')) {
        while (!take(']')) {
          value(field, out, depth);
          if (!take(',') && peek() != ']') expect(']');
        }
      } else {
        value(field, out, depth);
      }
      if (!take(',')) take(';');
    }
    if (close != '\0') ++at_;
    return out;
  }

  const Field& fieldOf(const Message& message, std::string_view name) const {
    for (const Field& field : message.fields)
      if (field.name == name) return field;
    std::vector<std::string_view> names;
    for (const Field& field : message.fields) names.push_back(field.name);
    fail(fmt::format("{} has no field {}", message.name, quoted(name)), didYouMean(name, names));
  }

  char openMessage() {
    if (take('{')) return '}';
    if (take('<')) return '>';
    expect('{');
    return '}';
  }

  void value(const Field& field, std::string& out, int depth) {
    switch (field.form) {
      case Form::Message: {
        const char close = openMessage();
        putBytes(out, field.number, message(field.message, close, depth + 1));
        break;
      }
      case Form::Bytes:
        putBytes(out, field.number, string());
        break;
      case Form::Int:
        putTag(out, field.number, wire::Wire::Varint);
        putVarint(out, static_cast<uint64_t>(integer()));
        break;
      case Form::Float: {
        putTag(out, field.number, wire::Wire::Fixed32);
        const float number = real();
        char bytes[sizeof number];
        std::memcpy(bytes, &number, sizeof number);
        out.append(bytes, sizeof number);
        break;
      }
      case Form::Skipped:
        skipValue(depth);
        break;
    }
  }

  void skipValue(int depth) {
    if (depth > wire::kMaxDepth) fail(fmt::format("messages nest deeper than {}", wire::kMaxDepth));
    const char c = peek();
    if (c == '"' || c == '\'') {
      static_cast<void>(string());
    } else if (c == '{' || c == '<') {
      const char close = openMessage();
      while (!take(close)) {
        static_cast<void>(word());
        if (take(':') && take('[')) {
          while (!take(']')) {
            skipValue(depth + 1);
            if (!take(',') && peek() != ']') expect(']');
          }
        } else {
          skipValue(depth + 1);
        }
        if (!take(',')) take(';');
      }
    } else {
      static_cast<void>(word());
    }
  }

  int64_t integer() {
    std::string_view digits = word();
    const std::string_view whole = digits;
    for (const Named& named : kNamed)
      if (named.name == whole) return named.value;
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits.front() == '0') {
      base = 8;
      digits.remove_prefix(1);
    }
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (fault != std::errc() || end != digits.data() + digits.size() || (negative && value > most + 1))
      fail(fmt::format("expected a whole number of 64 bits, got {}", quoted(whole)));
    return static_cast<int64_t>(negative ? ~value + 1 : value);
  }

  float real() {
    const std::string number(word());
    const char* first = number.c_str();
    char* end = nullptr;
    // strtof knows inf, nan, and exponents in every form; the text form allows an f after them.
    const float value = std::strtof(first, &end);
    if (end != first && (*end == 'f' || *end == 'F')) ++end;
    if (end == first || *end != '\0') fail(fmt::format("expected a number, got {}", quoted(number)));
    return value;
  }

  // One string, or several side by side that belong together.
  std::string string() {
    std::string out;
    do {
      const char quote = peek();
      if (quote != '"' && quote != '\'') expect('"');
      ++at_;
      while (at_ < text_.size() && text_[at_] != quote) {
        if (text_[at_] == '\n') fail("the line ends in the middle of a string");
        if (text_[at_] == '\\') {
          ++at_;
          escape(out);
        } else {
          out.push_back(text_[at_++]);
        }
      }
      if (at_ == text_.size()) fail("the text ends in the middle of a string");
      ++at_;
    } while (peek() == '"' || peek() == '\'');
    return out;
  }

  // Up to `most` digits of a base, from here on.
  unsigned digits(int base, size_t most) {
    const char* const first = text_.data() + at_;
    unsigned value = 0;
    const auto [end, fault] = std::from_chars(first, first + std::min(most, text_.size() - at_), value, base);
    if (fault != std::errc() || *first == '-') fail("a string has an escape without digits");
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  void escape(std::string& out) {
    if (at_ == text_.size()) fail("the text ends in the middle of a string");
    constexpr std::string_view kLetters = "abfnrtv\\'\"?", kMeanings = "\a\b\f\n\r\t\v\\'\"?";
    const char c = text_[at_];
    if (c >= '0' && c <= '7') {
      out.push_back(static_cast<char>(digits(8, 3)));
    } else if (c == 'x' || c == 'X') {
      ++at_;
      out.push_back(static_cast<char>(digits(16, 2)));
    } else if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      ++at_;
      out.push_back(kMeanings[i]);
    } else {
      fail(fmt::format("a string has an unknown escape {}", quoted(text_.substr(at_ - 1, 2))));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<std::string> toWire(std::string_view text) {
  try {
    return Parser(text).net();
  } catch (Fault& fault) {
    return std::move(fault.error);
  }
}

bool looksLikeNetText(std::string_view text) {
  Parser parser(text);
  const std::string_view word = parser.firstWord();
  const char next = parser.peek();
  return (next == ':' || next == '{' || next == '<') &&
         std::any_of(std::begin(kNetFields), std::end(kNetFields), [&](const Field& f) { return f.name == word; });
}

}  // namespace aglow::caffe2
