// Conversions independent of the process's locale.
#include "dynamic/strings/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "support/quote.h"

namespace aglow::strings {

namespace {

template <class T>
std::string plain(T value) {
  char text[1200];  // the smallest double has 1074 digits after its point
  const auto end = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed);
  AGLOW_CHECK(end.ec == std::errc(), "a number does not fit its text");
  return {text, end.ptr};
}

// Kinds narrower than f32 need fewer digits than a float would show.
std::string shortest(double value, ElemKind kind) {
  constexpr int kEnough = 9;
  if (value == std::trunc(value)) return plain(value);
  for (int digits = 1; digits < kEnough; ++digits) {
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    double rounded = 0;
    std::from_chars(text.data(), text.data() + text.size(), rounded);
    if (Tensor::scalar(kind, rounded).doubles().front() == value) return plain(rounded);
  }
  return plain(static_cast<float>(value));
}

std::string textOf(double value, ElemKind kind) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  if (kind == ElemKind::Float64) return plain(value);
  return kind == ElemKind::Float32 ? plain(static_cast<float>(value)) : shortest(value, kind);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

template <class T>
struct Parsed {
  T value{};
  std::errc fault{};
};

template <class T>
Parsed<T> parse(std::string_view text) {
  Parsed<T> parsed;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, parsed.value);
  parsed.fault = fault == std::errc::invalid_argument || stop != end ? std::errc::invalid_argument : fault;
  return parsed;
}

// from_chars does not tell the two ends of the range apart.
bool tooSmall(std::string_view text) {
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) return text.substr(exponent + 1).starts_with('-');
  return text.substr(0, text.find('.')).find_first_of("123456789") == std::string_view::npos;
}

bool equalsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

std::optional<double> special(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (equalsIgnoringCase(text, "nan")) return NAN;
  if (equalsIgnoringCase(text, "inf") || equalsIgnoringCase(text, "infinity")) return negative ? -INFINITY : INFINITY;
  return std::nullopt;
}

template <class T>
std::optional<T> realOf(std::string_view text) {
  if (const auto value = special(text)) return static_cast<T>(*value);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const Parsed<T> exact = parse<T>(text);
  if (exact.fault == std::errc()) return exact.value;
  if (exact.fault != std::errc::result_out_of_range) return std::nullopt;
  const T magnitude = tooSmall(text) ? T{0} : std::numeric_limits<T>::infinity();
  return text.starts_with('-') ? -magnitude : magnitude;
}

template <class T>
std::optional<T> wholeOf(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const Parsed<T> exact = parse<T>(text);
  if (exact.fault == std::errc()) return exact.value;
  const std::optional<double> real = realOf<double>(text);
  // The limits are powers of two, which doubles hold exactly.
  if (!real || !(*real > -1 || *real >= static_cast<double>(std::numeric_limits<T>::min())) ||
      !(*real < std::ldexp(1.0, std::numeric_limits<T>::digits)))
    return std::nullopt;
  return static_cast<T>(*real);
}

template <class T>
std::optional<T> valueOf(std::string_view text) {
  if constexpr (std::is_floating_point_v<T>)
    return realOf<T>(trimmed(text));
  else
    return wholeOf<T>(trimmed(text));
}

template <class T>
Result<Tensor> parsed(const StringTensor& strings, ElemKind kind) {
  Tensor out(Type(kind, strings.shape()));
  std::byte* to = out.mutableData();
  for (const std::string& text : strings.strings()) {
    const std::optional<T> value = valueOf<T>(text);
    if (!value)
      return Error{
          .code = Code::RuntimeValue,
          .message = fmt::format("expected a number of kind {}, got the string {}", elemName(kind), quoted(text))};
    std::memcpy(to, &*value, sizeof(T));
    to += sizeof(T);
  }
  return out;
}

}  // namespace

StringTensor textOf(const Tensor& numbers) {
  const ElemKind kind = numbers.type().kind();
  std::vector<std::string> texts;
  if (isFloat(kind)) {
    for (const double value : numbers.doubles()) texts.push_back(textOf(value, kind));
  } else {
    for (const int64_t value : numbers.toInts())
      texts.push_back(kind == ElemKind::UInt64 ? std::to_string(static_cast<uint64_t>(value)) : std::to_string(value));
  }
  return {numbers.type().shape(), std::move(texts)};
}

Result<Tensor> numbersOf(const StringTensor& strings, ElemKind kind) {
  switch (kind) {
    case ElemKind::Float64:
      return parsed<double>(strings, kind);
    case ElemKind::Float32:
      return parsed<float>(strings, kind);
    case ElemKind::UInt64:
      return parsed<uint64_t>(strings, kind);
    default:
      AGLOW_CHECK(kind == ElemKind::Int64, "strings are not read as this kind");
      return parsed<int64_t>(strings, kind);
  }
}

}  // namespace aglow::strings
