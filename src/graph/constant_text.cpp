// The bytes of constants as text.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "graph/syntax.h"
#include "tensor/convert.h"

namespace aglow {

namespace {

constexpr int64_t kMostInline = 16;

uint64_t loadBits(ElemKind kind, const std::byte* element) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, static_cast<size_t>(elemBytes(kind)));
  return bits;
}

template <class D>
std::optional<uint64_t> integerBits(ElemKind kind, D value) {
  uint64_t bits = 0;
  auto* bytes = reinterpret_cast<std::byte*>(&bits);
  narrow(kind, &value, 1, bytes, 0);
  D again = 0;
  widen(kind, bytes, 0, 1, 1, &again);
  if (again != value) return std::nullopt;
  return bits;
}

std::optional<uint64_t> realBits(ElemKind kind, double value) {
  const uint64_t bits = floatToBits(kind, value);
  const double again = floatFromBits(kind, bits);
  if (std::isnan(again) != std::isnan(value) || std::isinf(again) != std::isinf(value)) return std::nullopt;
  return bits;
}

// The bits that a text stands for; nothing when it is not a value of the kind.
std::optional<uint64_t> elementBits(ElemKind kind, std::string_view text) {
  if (isHexadecimal(text)) {
    const auto bits = parseUnsigned(text);
    const bool fits = bits && (elemBytes(kind) == 8 || *bits >> (8 * elemBytes(kind)) == 0);
    return fits ? bits : std::nullopt;
  }
  switch (elemInfo(kind).cls) {
    case ElemClass::Bool:
      if (text != "true" && text != "false") return std::nullopt;
      return text == "true" ? 1 : 0;
    case ElemClass::Float: {
      const auto real = parseReal(text);
      return real ? realBits(kind, *real) : std::nullopt;
    }
    case ElemClass::Unsigned: {
      const auto natural = parseUnsigned(text);
      return natural ? integerBits(kind, *natural) : std::nullopt;
    }
    case ElemClass::Signed:
    case ElemClass::Quantized:
      break;
  }
  const auto integer = parseInteger(text);
  return integer ? integerBits(storageKind(kind), *integer) : std::nullopt;
}

// The shortest decimal that rounds to these bits.
std::string realText(ElemKind kind, uint64_t bits) {
  const double value = floatFromBits(kind, bits);
  if (!std::isfinite(value) || kind == ElemKind::Float64) return fmt::format("{}", value);
  for (int digits = 1;; ++digits) {
    const auto rounded = parseReal(fmt::format("{:.{}g}", value, digits));
    if (digits >= 17 || floatToBits(kind, rounded.value_or(value)) == bits)
      return fmt::format("{}", rounded.value_or(value));
  }
}

std::string decimal(ElemKind kind, const std::byte* element) {
  int64_t integer = 0;
  uint64_t natural = 0;
  switch (elemInfo(kind).cls) {
    case ElemClass::Bool:
      return loadBits(kind, element) != 0 ? "true" : "false";
    case ElemClass::Float:
      return realText(kind, loadBits(kind, element));
    case ElemClass::Unsigned:
      widen(kind, element, 0, 1, 1, &natural);
      return std::to_string(natural);
    case ElemClass::Signed:
    case ElemClass::Quantized:
      break;
  }
  widen(storageKind(kind), element, 0, 1, 1, &integer);
  return std::to_string(integer);
}

}  // namespace

std::string printElement(ElemKind kind, const std::byte* element) {
  const uint64_t bits = loadBits(kind, element);
  std::string text = decimal(kind, element);
  if (elementBits(kind, text) == bits) return text;
  return fmt::format("0x{:0{}x}", bits, 2 * elemBytes(kind));
}

Status parseElement(Lexer& lexer, ElemKind kind, std::byte* element) {
  const Token& token = lexer.peek();
  const bool maybe = token.kind == Token::Kind::Number || token.kind == Token::Kind::Word;
  const std::optional<uint64_t> bits = maybe ? elementBits(kind, token.text) : std::nullopt;
  if (!bits) return lexer.unexpected(fmt::format("a value of {}", elemName(kind)));
  std::memcpy(element, &*bits, static_cast<size_t>(elemBytes(kind)));
  lexer.next();
  return {};
}

std::string ConstantText::print(const Tensor& tensor) {
  const ElemKind kind = tensor.type().kind();
  const int64_t count = tensor.type().elements();
  if (count <= kMostInline) {
    std::string out = "[";
    for (int64_t i = 0; i < count; ++i)
      out += (i == 0 ? "" : ", ") + printElement(kind, tensor.data() + i * elemBytes(kind));
    return out + "]";
  }
  if (tensor.bytes() <= splatBytes_ && tensor.isSplat()) {
    splatBytes_ -= tensor.bytes();
    return "splat " + printElement(kind, tensor.data());
  }
  return fmt::format("blob 0x{:016x}", written_ != nullptr ? written_->add(tensor) : tensor.hash());
}

namespace {

Result<Tensor> parseElements(Lexer& lexer, const Type& type) {
  const auto size = static_cast<size_t>(elemBytes(type.kind()));
  const Token start = lexer.next();
  std::vector<std::byte> bytes;
  if (!lexer.accept("]")) {
    do {
      bytes.resize(bytes.size() + size);
      AGLOW_OK(parseElement(lexer, type.kind(), bytes.data() + bytes.size() - size));
    } while (lexer.accept(","));
    if (!lexer.accept("]")) return lexer.unexpected("',' or ']'");
  }
  const auto count = static_cast<int64_t>(bytes.size() / size);
  if (count != type.elements())
    return textError(start, fmt::format("expected {} elements for {}, found {}", type.elements(), type.text(), count));
  Tensor tensor(type);
  if (count > 0) std::memcpy(tensor.mutableData(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

Result<Tensor> ConstantText::parse(Lexer& lexer, const Type& type) {
  if (lexer.at("splat")) return parseSplat(lexer, type);
  if (lexer.at("blob")) return parseBlob(lexer, type);
  if (lexer.at("[")) return parseElements(lexer, type);
  return lexer.unexpected("'[', 'splat' or 'blob'");
}

Result<Tensor> ConstantText::parseSplat(Lexer& lexer, const Type& type) {
  const Token start = lexer.next();
  std::byte element[8] = {};
  AGLOW_OK(parseElement(lexer, type.kind(), element));
  if (type.bytes() > splatBytes_)
    return textError(start, fmt::format("the splats of one text may have {} bytes together", kSplatBytes),
                     "larger constants are blobs");
  splatBytes_ -= type.bytes();
  Tensor tensor(type);
  std::byte* data = tensor.mutableData();
  const auto size = static_cast<size_t>(elemBytes(type.kind()));
  for (int64_t i = 0; i < type.elements(); ++i) std::memcpy(data + static_cast<size_t>(i) * size, element, size);
  return tensor;
}

Result<Tensor> ConstantText::parseBlob(Lexer& lexer, const Type& type) const {
  const Token start = lexer.next();
  const auto key = lexer.peek().kind == Token::Kind::Number ? parseUnsigned(lexer.peek().text) : std::nullopt;
  if (!key) return lexer.unexpected("the key of a blob, such as 0x0123456789abcdef");
  lexer.next();
  const Tensor* found = read_ != nullptr ? read_->find(*key) : nullptr;
  if (found == nullptr)
    return textError(start, fmt::format("there is no blob 0x{:016x}", *key),
                     "the blobs of a text stand in a file of their own beside it");
  if (found->type() != type)
    return textError(start, fmt::format("blob 0x{:016x} is {}, expected {}", *key, found->type().text(), type.text()));
  return *found;
}

}  // namespace aglow
