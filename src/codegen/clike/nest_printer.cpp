#include "codegen/clike/nest_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <type_traits>

#include "codegen/nest/kinds.h"
#include "codegen/nest/scalars.h"

namespace aglow::codegen {

using enum ElemKind;
using nest::Expr;
using nest::isReal;

std::string typeName(ElemKind kind) {
  if (kind == Bool) return "bool";
  if (isReal(kind)) return kind == Float32 ? "float" : "f64";
  return fmt::format("{}int{}_t", isSigned(kind) ? "" : "u", 8 * elemBytes(kind));
}
std::string storedName(ElemKind kind) {
  if (kind == Float64) return "stored_f64";
  return kind == Bool ? "uint8_t" : typeName(kind);
}

namespace {

template <class T>
std::string literal(T value) {
  if (value != value) return "NAN";
  if (value - value != 0) return value > 0 ? "INFINITY" : "(-INFINITY)";
  const std::string text = fmt::format("{:#}{}", value, std::is_same_v<T, float> ? "f" : "");
  return std::signbit(value) ? fmt::format("({})", text) : text;
}

// A wide one also as the sum of two floats, for devices that have no other: `word` takes all three.
std::string realText(double value, ElemKind kind, std::string_view word = "F64") {
  const auto high = static_cast<float>(value);
  if (kind == Float32) return literal(high);
  const double low = std::isfinite(high) ? value - high : 0;
  return fmt::format("{}({}, {}, {})", word, literal(value), literal(high), literal(static_cast<float>(low)));
}

// The struct narrow_float of a kind.
std::string formatText(ElemKind kind) {
  const FloatFormat f = nest::narrowFormat(kind);
  return fmt::format("NARROW_FLOAT({}, {}, {}, {}, {}, {}, {}, {})", f.mantissaBits, f.bias, f.signBit(), f.largest(),
                     f.overflow(false), f.overflow(true), f.nan(false), f.nan(true));
}

std::string convert(const Expr& e, ElemKind from, const std::string& x) {
  const std::string_view wide = from == Float64 ? "_f64" : "";
  if (e.kind == Bool) return from == Float64 ? fmt::format("!eq_f64({}, {})", x, zeroText(from)) : x + " != 0";
  if (e.kind == Float64) return fmt::format("f64_of_{}({})", elemName(from), x);
  if (e.kind == Float32 && from == Float64) return fmt::format("f32_of_f64({})", x);
  if (from == Float8E8M0) return fmt::format("(float)widen_scale({})", x);
  if (e.kind == Float8E8M0)
    return fmt::format("narrow_scale{}({}, {:d}, {})", wide, x, e.saturate, static_cast<int>(e.rounding));
  if (from == Float16 && e.kind == Float32) return fmt::format("f32_of_f16({})", x);
  if (e.kind == Float16 && from == Float32 && !e.saturate) return fmt::format("f16_of_f32({})", x);
  if (isFloat(from) && !isReal(from)) return fmt::format("(float)widen({}, {})", x, formatText(from));
  if (isFloat(e.kind) && !isReal(e.kind))
    return fmt::format("({})narrow{}({}, {}, {:d})", typeName(e.kind), wide, x, formatText(e.kind), e.saturate);
  if (isReal(from) && isInteger(e.kind)) return fmt::format("{}_of{}({})", elemName(e.kind), wide, x);
  const int unused = isInteger(e.kind) ? 8 * elemBytes(e.kind) - elemInfo(e.kind).bits : 0;
  if (unused == 0) return fmt::format("({}){}", typeName(e.kind), x);
  return fmt::format("({0})(({0})((uint64_t){1} << {2}) >> {2})", typeName(e.kind), x, unused);
}

// offset + sum of stride * index
std::string index(std::span<const int64_t> strides, int64_t offset = 0) {
  std::string text = offset == 0 ? "" : fmt::format("{}", offset);
  for (size_t i = 0; i < strides.size(); ++i) {
    if (strides[i] == 0) continue;
    if (!text.empty()) text += " + ";
    text += strides[i] == 1 ? fmt::format("i{}", i) : fmt::format("{} * i{}", strides[i], i);
  }
  return text.empty() ? "0" : text;
}

}  // namespace

std::string numberText(ElemKind kind, uint64_t bits) {
  if (isReal(kind)) return realText(std::bit_cast<double>(bits), kind);
  const int unused = 64 - 8 * elemBytes(kind);
  if (!isSigned(kind)) return fmt::format("(({})UINT64_C({}))", typeName(kind), bits << unused >> unused);
  const int64_t number = static_cast<int64_t>(bits << unused) >> unused;
  return number == INT64_MIN ? "INT64_MIN" : fmt::format("(({})INT64_C({}))", typeName(kind), number);
}

std::string zeroText(ElemKind kind) { return kind == Float64 ? realText(0, kind) : "0"; }

std::string appliedText(Scalar op, ElemKind kind, const std::string& x, const std::string& y, const std::string& z) {
  if (op == Scalar::Select) return fmt::format("{} ? {} : {}", x, y, z);
  if (op == Scalar::IsNan && kind != Float64) return fmt::format("{} != {}", x, x);
  const nest::ScalarInfo& info = nest::scalarInfo(op);
  const std::string_view c = kind == Float64 ? std::string_view{} : isReal(kind) ? info.cOfReals : info.cOfIntegers;
  if (!c.empty() && std::ispunct(c[0]) != 0)
    return y.empty() ? fmt::format("{}{}", c, x) : fmt::format("{} {} {}", x, c, y);
  const std::string name =
      c.empty() ? fmt::format("{}_{}", info.name, elemName(kind)) : fmt::format("{}{}", c, kind == Float32 ? "f" : "");
  return y.empty() ? fmt::format("{}({})", name, x) : fmt::format("{}({}, {})", name, x, y);
}

std::string convertedText(ElemKind from, ElemKind to, std::string value) {
  ElemKind at = storageKind(from);
  for (const ElemKind step : nest::conversion(from, to)) {
    value = fmt::format("({})", convert({.op = Expr::Op::Convert, .kind = step}, at, value));
    at = step;
  }
  return value;
}

std::string loadedText(ElemKind kind, const std::string& element) {
  if (kind == Float64) return fmt::format("load_f64({})", element);
  return kind == Bool ? fmt::format("({} != 0)", element) : element;
}

std::string elementText(ElemKind from, ElemKind to, const std::string& element) {
  return convertedText(from, to, loadedText(storageKind(from), element));
}

std::string storedText(ElemKind kind, const std::string& value) {
  return kind == Float64 ? fmt::format("store_f64({})", value) : value;
}

void TextBlock::line(std::string_view text) { out_ += fmt::format("{:{}}{}\n", "", 2 * depth_, text); }
void TextBlock::open(std::string_view text) {
  line(fmt::format("{} {{", text));
  ++depth_;
}
void TextBlock::close() { out_ += fmt::format("{:{}}}}\n", "", 2 * --depth_); }

bool NestPrinter::uses(size_t operand) const {
  return std::ranges::count(nest_.accesses, static_cast<int>(operand), &nest::Access::operand) > 0;
}

void NestPrinter::values(const nest::Block& block) {
  for (int id = block.begin; id < block.end; ++id) {
    const Expr& e = nest_.value(id);
    if (e.op != Expr::Op::Number) out_.line(fmt::format("const {} v{} = {};", typeName(e.kind), id, expression(e)));
  }
}

void NestPrinter::stores(const nest::Block& block) {
  for (const nest::Store& store : block.stores)
    out_.line(fmt::format("{} = {};", store.row >= 0 ? kept(store.row) : element(store.access),
                          storedText(nest_.value(store.value).kind, value(store.value))));
}

void NestPrinter::startReduction(int id) {
  const nest::Reduction& r = nest_.reductions[static_cast<size_t>(id)];
  out_.line(fmt::format("{} r{} = {};", typeName(r.kind), id, numberText(r.kind, r.start)));
}

std::string NestPrinter::combined(int id, const std::string& with) const {
  const nest::Reduction& r = nest_.reductions[static_cast<size_t>(id)];
  return appliedText(r.combine, r.kind, fmt::format("r{}", id), with);
}

std::string NestPrinter::combination(int id) const {
  const int with = nest_.reductions[static_cast<size_t>(id)].value;
  return fmt::format("r{} = {};", id, combined(id, value(with)));
}

std::string NestPrinter::tableText(size_t table) const {
  const nest::Table& t = nest_.tables[table];
  std::string numbers;
  for (const double number : t.values)
    numbers += (numbers.empty() ? "" : ", ") +
               (isReal(t.kind) ? realText(number, t.kind, "F64_ENTRY") : fmt::format("{}", number));
  return fmt::format("{{{}}}", numbers);
}

std::string NestPrinter::value(int id) const {
  if (id < 0) return "";
  const Expr& e = nest_.value(id);
  return e.op == Expr::Op::Number ? numberText(e.kind, e.number) : fmt::format("v{}", id);
}

bool NestPrinter::inFours(int access) const {
  const nest::Access& a = nest_.accesses[static_cast<size_t>(access)];
  if (a.operand < 0) return false;
  if (inOrder(a)) return true;
  return nest_.axes.back().extent % 4 == 0 && a.strides.back() == 1 && a.offset % 4 == 0 &&
         std::all_of(a.strides.begin(), a.strides.end() - 1, [](int64_t stride) { return stride % 4 == 0; });
}

bool NestPrinter::inOrder(const nest::Access& access) const {
  int64_t below = 1;
  for (size_t i = nest_.axes.size(); i-- > 0; below *= nest_.axes[i].extent)
    if (nest_.axes[i].extent != 1 && access.strides[i] != below) return false;
  return access.offset == 0;
}

std::string NestPrinter::place(int access) const {
  const nest::Access& a = nest_.accesses[static_cast<size_t>(access)];
  return !point_.empty() && inOrder(a) ? point_ : index(a.strides, a.offset);
}

std::string NestPrinter::element(int access) const {
  const nest::Access& a = nest_.accesses[static_cast<size_t>(access)];
  if (!together_.empty() && together_[static_cast<size_t>(access)]) return fmt::format("w{}[lane]", access);
  return a.table >= 0 ? fmt::format("t{}[{}]", a.table, place(access))
                      : fmt::format("p{}[{}]", a.operand, place(access));
}

// The number of the point among those of the axes from `first` on.
std::string NestPrinter::position(size_t first) const {
  std::vector<int64_t> strides(nest_.axes.size());
  int64_t below = 1;
  for (size_t i = strides.size(); i-- > first; below *= nest_.axes[i].extent) strides[i] = below;
  return index(strides);
}
std::string NestPrinter::kept(int row) const {
  return fmt::format("k{}[{}]", row, keptIndex_.empty() ? position(outerAxes()) : keptIndex_);
}

std::string NestPrinter::expression(const Expr& e) const {
  using enum Expr::Op;
  if (e.op == Load)
    return nest_.accesses[static_cast<size_t>(e.a)].table >= 0 ? element(e.a) : loadedText(e.kind, element(e.a));
  if (e.op == Kept) return loadedText(e.kind, kept(e.a));
  if (e.op == Reduced) return fmt::format("r{}", e.a);
  if (e.op == Given) return given_.empty() ? loadedText(e.kind, fmt::format("given[{}]", position(0))) : given_;
  if (e.op == Lookup) return fmt::format("t{}[(uint8_t){}]", e.b, value(e.a));
  if (e.op == Convert) return convert(e, nest_.value(e.a).kind, value(e.a));
  const ElemKind kind = nest_.value(e.scalar == Scalar::Select ? e.b : e.a).kind;
  return appliedText(e.scalar, kind, value(e.a), value(e.b), value(e.c));
}

}  // namespace aglow::codegen
