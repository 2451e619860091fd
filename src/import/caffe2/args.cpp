#include "import/caffe2/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace aglow::caffe2 {

namespace {

// An argument with a value; empty lists stand for arguments that hold nothing.
const Attribute* given(const OpImport& c, std::string_view name) {
  const Attribute* a = c.attr(name);
  return a == nullptr || (a->type == AttributeType::Ints && a->ints.empty()) ? nullptr : a;
}

[[noreturn]] void wrong(std::string_view name, std::string_view expected) {
  fail(Code::BadNode, fmt::format("expected {} in argument '{}'", expected, name));
}

template <class T>
T orMissing(std::string_view name, const std::optional<T>& otherwise) {
  if (!otherwise) fail(Code::BadNode, fmt::format("argument '{}' is required but missing", name));
  return *otherwise;
}

}  // namespace

int64_t intArg(const OpImport& c, std::string_view name, std::optional<int64_t> otherwise) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return orMissing(name, otherwise);
  if (a->type != AttributeType::Int) wrong(name, "one whole number");
  return a->i;
}

double realArg(const OpImport& c, std::string_view name, std::optional<double> otherwise) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return orMissing(name, otherwise);
  if (a->type == AttributeType::Int) return static_cast<double>(a->i);
  if (a->type != AttributeType::Float) wrong(name, "one number");
  return static_cast<double>(a->f);
}

bool flag(const OpImport& c, std::string_view name, bool otherwise) { return intArg(c, name, int64_t{otherwise}) != 0; }

std::string wordArg(const OpImport& c, std::string_view name, const std::string& otherwise) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return otherwise;
  if (a->type != AttributeType::String) wrong(name, "a string");
  return a->s;
}

std::vector<int64_t> intsArg(const OpImport& c, std::string_view name) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return {};
  if (a->type == AttributeType::Int) return {a->i};
  if (a->type != AttributeType::Ints) wrong(name, "whole numbers");
  return a->ints;
}

std::vector<double> realsArg(const OpImport& c, std::string_view name) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return {};
  if (a->type == AttributeType::Ints) return {a->ints.begin(), a->ints.end()};
  if (a->type != AttributeType::Floats) wrong(name, "numbers");
  return {a->floats.begin(), a->floats.end()};
}

ElemKind kindArg(const OpImport& c, std::string_view name, std::optional<ElemKind> otherwise) {
  const Attribute* a = given(c, name);
  if (a == nullptr) return orMissing(name, otherwise);
  int64_t type = a->i;
  if (a->type == AttributeType::String) {
    constexpr std::string_view kNames[] = {"undefined", "float",  "int32", "byte",  "string", "bool",    "uint8",
                                           "int8",      "uint16", "int16", "int64", "",       "float16", "double"};
    std::string word = a->s;
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char l) { return std::tolower(l); });
    type = std::find(std::begin(kNames), std::end(kNames), word) - std::begin(kNames);
  } else if (a->type != AttributeType::Int) {
    wrong(name, "a data type");
  }
  const std::optional<ElemKind> kind = elemKindByOnnx(onnxType(type));
  if (!kind)
    fail(Code::UnsupportedFeature, fmt::format("argument '{}' names data type {}, which is not supported", name, type));
  return *kind;
}

bool channelsLast(const OpImport& c) {
  const std::string order = wordArg(c, "order", "NCHW");
  if (order != "NCHW" && order != "NHWC")
    fail(Code::BadNode, fmt::format("expected 'order' NCHW or NHWC, got '{}'", order));
  return order == "NHWC";
}

Value channelsFirst(const OpImport& c, Value x) {
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected a batch of images, got {}", x.type().text()));
  if (!channelsLast(c)) return x;
  std::vector<int64_t> perm = range(1, x.rank() - 1);
  perm.insert(perm.begin(), {0, x.rank() - 1});
  return c.b.transposed(x, perm);
}

Value orderedAsSaid(const OpImport& c, Value x) {
  if (!channelsLast(c)) return x;
  std::vector<int64_t> perm = range(2, x.rank());
  perm.insert(perm.begin(), 0);
  perm.push_back(1);
  return c.b.transposed(x, perm);
}

Value asMatrix(Builder& b, Value x, int64_t axis) {
  return b.reshaped(x, {product(x.shape(), 0, axis), product(x.shape(), axis, x.rank())});
}

Value indices(const OpImport& c, int operand) {
  const Value x = c.in(operand);
  if (!isInteger(x.kind()))
    fail(Code::BadNode, fmt::format("expected whole numbers in input {}, got {}", operand, x.type().text()));
  return c.b.casted(x, ElemKind::Int64);
}

void checkVector(Value x, std::string_view what) {
  if (x.rank() != 1) fail(Code::BadNode, fmt::format("expected a vector of {}, got {}", what, x.type().text()));
}

}  // namespace aglow::caffe2
