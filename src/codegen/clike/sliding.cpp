#include "codegen/clike/sliding.h"

#include <fmt/format.h>

#include "codegen/clike/nest_printer.h"
#include "support/check.h"

namespace aglow::codegen {

static Window windowIn(const Attrs& attrs, std::vector<int64_t> kernel) {
  Result<Window> window = windowOf(attrs, std::move(kernel));
  AGLOW_CHECK(window.ok(), "a window that was checked");
  return *std::move(window);
}

Sliding::Sliding(const Attrs& attrs, std::vector<int64_t> kernel, const Shape& x, const std::string& indexType)
    : window(windowIn(attrs, std::move(kernel))), type(indexType) {
  input.assign(x.dims().begin() + 2, x.dims().end());
  strides = Shape(input).strides();
  for (const int64_t extent : input) plane *= extent;
  constexpr int64_t kFar = 1 << 20;
  for (const auto* list : {&window.strides, &window.dilations, &window.before, &window.after, &window.kernel})
    for (const int64_t number : *list)
      if (number > kFar) type = "int64_t";
}

std::array<Along, Sliding::kAxes> Sliding::axes(const Shape& y) const {
  AGLOW_CHECK(input.size() <= kAxes, "at most three spatial axes");
  std::array<Along, kAxes> all;
  for (size_t a = 0; a < input.size(); ++a)
    all[kAxes - input.size() + a] = {.kernel = window.kernel[a],
                                     .stride = window.strides[a],
                                     .dilation = window.dilations[a],
                                     .before = window.before[a],
                                     .input = input[a],
                                     .result = y[static_cast<int>(a) + 2]};
  return all;
}

bool Sliding::copiesInput(int64_t taps) const {
  const auto all = [](const std::vector<int64_t>& list, int64_t value) {
    return std::all_of(list.begin(), list.end(), [&](int64_t one) { return one == value; });
  };
  return taps == 1 && all(window.strides, 1) && all(window.before, 0) && all(window.after, 0);
}

std::string Sliding::position(size_t axis, const std::string& result, const std::string& tap) const {
  return fmt::format("({})({}) * {} - {} + ({})({}) * {}", type, result, window.strides[axis], window.before[axis],
                     type, tap, window.dilations[axis]);
}

std::string Sliding::inside(size_t axis) const { return fmt::format("q{0} >= 0 && q{0} < {1}", axis, input[axis]); }

std::string Sliding::element() const {
  std::string text = "0";
  for (size_t a = 0; a < input.size(); ++a) text += fmt::format(" + q{} * {}", a, strides[a]);
  return text;
}

// The index along an axis of the result with a number.
static std::string resultIndex(const Shape& y, size_t axis, std::string_view number) {
  int64_t below = 1;
  for (int after = static_cast<int>(axis) + 3; after < y.rank(); ++after) below *= y[after];
  return fmt::format("{} / {} % {}", number, below, y[static_cast<int>(axis) + 2]);
}

std::string Sliding::start(const std::string& channel, const Shape& y, std::string_view number) const {
  std::string text = fmt::format("({}) * {}", channel, plane);
  for (size_t a = 0; a < input.size(); ++a)
    text += fmt::format(" + ({}) * {}", position(a, resultIndex(y, a, number), "0"), strides[a]);
  return text;
}

// Bits of one axis lie as far apart as the taps of all axes after it are many, so that their product has all of them.
std::string Sliding::tapsInside(const Shape& y, std::string_view number) const {
  std::string text;
  int64_t below = 1;
  for (size_t a = input.size(); a-- > 0; below *= window.kernel[a]) {
    std::string bits;
    for (int64_t tap = 0; tap < window.kernel[a]; ++tap) {
      const std::string at = position(a, resultIndex(y, a, number), std::to_string(tap));
      bits += fmt::format("{}({} >= 0 && {} < {} ? {} : 0)", tap == 0 ? "" : " + ", at, at, input[a],
                          int64_t{1} << (tap * below));
    }
    text += fmt::format("{}({})", text.empty() ? "" : " * ", bits);
  }
  return text;
}

std::string Sliding::on(const std::string& tap) const {
  std::string text = "0";
  int64_t below = 1;
  for (size_t a = input.size(); a-- > 0; below *= window.kernel[a])
    text += fmt::format(" + {} / {} % {} * {}", tap, below, window.kernel[a], window.dilations[a] * strides[a]);
  return text;
}

std::string Sliding::loops(const std::string& each) const {
  constexpr int64_t kFewTaps = 32;
  int64_t taps = 1;
  for (const int64_t extent : window.kernel) taps *= extent;
  TextBlock out;
  std::string padded = "true", met = plane == 0 ? "false" : "true";
  for (size_t a = 0; a < input.size(); ++a) {
    if (taps <= kFewTaps) out.line("#pragma unroll");
    out.open(fmt::format("for ({0} t{1} = 0; t{1} < {2}; ++t{1})", type, a, window.kernel[a]));
    out.line(fmt::format("const {} q{} = {};", type, a, position(a, fmt::format("i{}", a + 2), fmt::format("t{}", a))));
    padded += fmt::format(" && q{} < {}", a, input[a] + window.after[a]);
    met += " && " + inside(a);
  }
  out.line(fmt::format("const bool padded = {}, inside = {};", padded, met));
  out.line(fmt::format("const {} from = inside ? {} : 0;", type, element()));
  out.line(each);
  for (size_t a = 0; a < input.size(); ++a) out.close();
  return out.take();
}

}  // namespace aglow::codegen
