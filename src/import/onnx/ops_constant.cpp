// Operators that make tensors of numbers, tell shapes, or change element kinds.
#include <fmt/format.h>

#include <cmath>

#include "import/onnx/labels.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/tensor_data.h"
#include "support/sizes.h"
#include "tensor/convert.h"

namespace aglow::onnx {

namespace {

Type vectorOf(ElemKind kind, size_t count) { return {kind, Shape{static_cast<int64_t>(count)}}; }

// A program has numbers instead.
void outStrings(OpImport& c, const StringTensor& strings) {
  NumberedStrings words = numbered(strings);
  c.out(0, Imported::labelled(c.b.constant(std::move(words.numbers)), std::move(words.labels)));
}

void constant(OpImport& c) {
  constexpr std::string_view kForms[] = {"value",     "sparse_value", "value_float",  "value_floats",
                                         "value_int", "value_ints",   "value_string", "value_strings"};
  std::vector<std::string_view> given;
  for (const std::string_view form : kForms)
    if (c.hasAttr(form)) given.push_back(form);
  if (given.size() != 1)
    fail(Code::BadNode, fmt::format("expected exactly one attribute with the value, got {}", given.size()));
  const std::string_view form = given.front();
  if (form == "value" && c.attr(form)->t && c.attr(form)->t->dataType == kStringType)
    return outStrings(c, orFail(toStrings(*c.attr(form)->t)));
  if (form == "value" || form == "sparse_value") return c.out(c.b.constant(c.tensor(form)));
  if (form == "value_float") return c.out(c.b.scalar(ElemKind::Float32, c.real(form)));
  if (form == "value_floats") {
    const std::vector<double> values = c.reals(form);
    return c.out(c.b.constant(Tensor::of(vectorOf(ElemKind::Float32, values.size()), values)));
  }
  if (form == "value_int")
    return c.out(c.b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{c.integer(form)})));
  if (form == "value_ints") return c.out(c.b.ints(c.ints(form)));
  if (form == "value_string") return outStrings(c, StringTensor(Shape{}, {c.word(form)}));
  const std::vector<std::string> words = c.words(form);
  outStrings(c, StringTensor(Shape{std::ssize(words)}, words));
}

void constantOfShape(OpImport& c) {
  const std::vector<int64_t> dims = c.constantInts(0);
  const Tensor value = c.hasAttr("value") ? c.tensor("value") : Tensor::scalar(ElemKind::Float32, 0);
  if (value.type().elements() != 1)
    fail(Code::BadNode, fmt::format("expected a 'value' of one element, got {}", value.type().text()));
  c.out(c.b.expand(c.b.constant(value.retyped(value.type().withShape(Shape{}))), {.shape = dims}));
}

void shape(OpImport& c) {
  const std::vector<int64_t>& dims = c.in(0).shape().dims();
  const auto rank = static_cast<int64_t>(dims.size());
  // Counted from the end where negative, then held inside of the shape.
  const auto place = [&](std::string_view name, int64_t otherwise) {
    const int64_t at = c.integer(name, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = place("start", 0), end = std::max(place("end", rank), start);
  c.out(c.b.ints({dims.begin() + start, dims.begin() + end}));
}

void size(OpImport& c) {
  c.out(c.b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{c.in(0).type().elements()})));
}

void identity(OpImport& c) { c.out(0, c.operand(0)); }

void castTo(OpImport& c, ElemKind to) {
  const std::string rounding = c.word("round_mode", "up");
  if (rounding != "up" && rounding != "down" && rounding != "nearest")
    fail(Code::BadNode, fmt::format("expected 'round_mode' up, down or nearest, got '{}'", rounding));
  const bool saturate = c.flag("saturate", true);
  const Value x = c.in(0);
  c.out(x.kind() == to ? x : c.b.cast(x, {.to = to, .saturate = saturate, .rounding = rounding}));
}

void cast(OpImport& c) { castTo(c, c.elem("to")); }
void castLike(OpImport& c) { castTo(c, c.in(1).kind()); }

// In bits, as ONNX counts them.
int widthOf(ElemKind kind) { return kind == ElemKind::Bool ? 8 : elemInfo(kind).bits; }

ElemKind unsignedOf(int width) {
  for (const ElemKind kind : {ElemKind::UInt2, ElemKind::UInt4, ElemKind::UInt8, ElemKind::UInt16, ElemKind::UInt32})
    if (elemInfo(kind).bits == width) return kind;
  return ElemKind::UInt64;
}

void bitCast(OpImport& c) {
  const ElemKind to = c.elem("to");
  const Value x = c.in(0);
  if (x.kind() == to) return c.out(x);
  if (widthOf(x.kind()) != widthOf(to))
    fail(Code::BadNode, fmt::format("expected a type as wide as {}, got {}", elemName(x.kind()), elemName(to)));
  // The bytes of narrow integers hold copies of the sign, and those of bool are 0 or 1, so integers convert by value:
  // it keeps their bits. Between floats and signed integers an unsigned kind stands in the middle.
  const auto whole = [](ElemKind kind) { return isInteger(kind) || kind == ElemKind::Bool; };
  if (whole(x.kind()) && whole(to)) return c.out(c.b.cast(x, {.to = to}));
  const ElemKind bits = unsignedOf(widthOf(to));
  const Value raw = whole(x.kind()) ? c.b.casted(x, bits) : c.b.bitcast(x, {.to = bits});
  c.out(whole(to) ? c.b.casted(raw, to) : c.b.bitcast(raw, {.to = to}));
}

void eyeLike(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", x.type().text()));
  const int64_t k = std::clamp<int64_t>(c.integer("k", 0), -x.dim(0), x.dim(1));
  const Value column = c.b.sub(iota(c.b, x.dim(1), 1, 2), c.b.scalar(ElemKind::Int64, static_cast<double>(k)));
  c.out(c.b.casted(c.b.equal(iota(c.b, x.dim(0), 0, 2), column), c.elem("dtype", x.kind())));
}

// How many steps lead from start to limit, or nothing when they are too many or endless.
std::optional<int64_t> stepCount(double start, double limit, double delta) {
  constexpr double kMost = 1 << 27;
  const double count = std::ceil((limit - start) / delta);
  if (!(count <= kMost)) return std::nullopt;
  return static_cast<int64_t>(std::max(count, 0.0));
}

void rangeOp(OpImport& c) {
  const ElemKind kind = c.in(0).kind();
  if (c.in(1).kind() != kind || c.in(2).kind() != kind)
    fail(Code::BadNode, fmt::format("expected operands of one kind, got {}, {} and {}", c.in(0).type().text(),
                                    c.in(1).type().text(), c.in(2).type().text()));
  const double start = c.constantReal(0), limit = c.constantReal(1), delta = c.constantReal(2);
  if (delta == 0) fail(Code::BadNode, "expected a 'delta' other than 0");
  const auto count = stepCount(start, limit, delta);
  if (!count)
    fail(Code::TooLarge, fmt::format("a range from {} to {} in steps of {} is too long", start, limit, delta));
  const Type type(kind, Shape{*count});
  if (isFloat(kind)) {
    std::vector<double> values;
    for (int64_t i = 0; i < *count; ++i) values.push_back(start + static_cast<double>(i) * delta);
    return c.out(c.b.constant(Tensor::of(type, values)));
  }
  // Integers of 64 bits do not all fit into a double; a wrapped sum is what the kind's own arithmetic gives.
  const auto first = static_cast<uint64_t>(c.constantInt(0)), step = static_cast<uint64_t>(c.constantInt(2));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < *count; ++i) values.push_back(static_cast<int64_t>(first + static_cast<uint64_t>(i) * step));
  c.out(c.b.constant(Tensor::of(type, values)));
}

void oneHot(OpImport& c) {
  const Value indices = c.b.casted(c.in(0), ElemKind::Int64), values = c.in(2);
  const int64_t depth = c.constant(1).type().elements() == 1 ? static_cast<int64_t>(c.constantReal(1)) : 0;
  if (depth < 1) fail(Code::BadNode, fmt::format("expected one 'depth' of at least 1, got {}", c.in(1).type().text()));
  if (values.shape() != Shape{2})
    fail(Code::BadNode, fmt::format("expected two 'values', off and on, got {}", values.type().text()));
  const int64_t rank = indices.rank() + 1, axis = c.axis(c.integer("axis", -1), rank);
  const Value depthValue = c.b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{depth}));
  const Value fromFront =
      c.b.where(c.b.less(indices, c.b.scalar(ElemKind::Int64, 0)), c.b.add(indices, depthValue), indices);
  const Value hit = c.b.equal(iota(c.b, depth, axis, rank), unsqueezed(c.b, fromFront, axis));
  const Value off = c.b.reshaped(sliced(c.b, values, 0, 0, 1), {}), on = c.b.reshaped(sliced(c.b, values, 0, 1, 1), {});
  c.out(c.b.where(hit, on, off));
}

}  // namespace

std::span<const OpRow> constantRows() {
  static constexpr OpRow rows[] = {
      {"Constant", constant}, {"ConstantOfShape", constantOfShape},
      {"Shape", shape},       {"Size", size},
      {"Identity", identity}, {"Cast", cast, 6},
      {"CastLike", castLike}, {"BitCast", bitCast},
      {"EyeLike", eyeLike},   {"Range", rangeOp},
      {"OneHot", oneHot},
  };
  return rows;
}

}  // namespace aglow::onnx
