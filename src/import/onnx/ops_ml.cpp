// Features and linear models of ai.onnx.ml, on numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_trees.h"

namespace aglow::onnx {

namespace {

// A constant with one value for each feature, or one for all.
Value perFeature(Builder& b, ElemKind kind, const std::vector<double>& values) {
  return b.constant(Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.size())}), values));
}

// [samples, features]; one sample may come without the first axis.
Value samplesOf(OpImport& c) {
  Value x = c.in(0);
  if (x.rank() == 1) x = unsqueezed(c.b, x, 0);
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected [samples, features], got {}", x.type().text()));
  return x.kind() == ElemKind::Float64 ? x : c.b.casted(x, ElemKind::Float32);
}

// x * coefficients^T + intercepts, [samples, rows of coefficients].
Value linearScores(OpImport& c, Value x, int64_t rows) {
  Builder& b = c.b;
  const std::vector<double> coefficients = c.reals("coefficients"), intercepts = c.reals("intercepts");
  if (rows < 1 || x.dim(1) < 1 || static_cast<int64_t>(coefficients.size()) / rows != x.dim(1) ||
      static_cast<int64_t>(coefficients.size()) % rows != 0 ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows))
    fail(Code::BadNode, fmt::format("expected {} by {} coefficients and {} intercepts, got {} and {}", rows, x.dim(1),
                                    rows, coefficients.size(), intercepts.size()));
  const Value matrix = b.constant(Tensor::of(Type(x.kind(), Shape{rows, x.dim(1)}), coefficients));
  const Value scores = b.matMul(x, b.transposed(matrix, {1, 0}));
  return intercepts.empty() ? scores : b.add(scores, perFeature(b, x.kind(), intercepts));
}

void linearRegressor(OpImport& c) {
  const Value scores = linearScores(c, samplesOf(c), c.integer("targets", 1));
  c.out(c.b.casted(postTransformed(c.b, scores, c.word("post_transform", "NONE")), ElemKind::Float32));
}

void linearClassifier(OpImport& c) {
  Builder& b = c.b;
  const Value x = samplesOf(c);
  const std::vector<int64_t> labels = c.ints("classlabels_ints");
  const size_t classes = std::max(labels.size(), c.words("classlabels_strings").size());
  const int64_t rows = static_cast<int64_t>(c.reals("coefficients").size()) / std::max<int64_t>(x.dim(1), 1);
  const std::string transform = c.word("post_transform", "NONE");
  Value scores = linearScores(c, x, rows);
  // One score for two classes is the distance from their border.
  if (rows == 1 && classes == 2) scores = b.concat({b.neg(scores), scores}, {.axis = 1});
  scores = postTransformed(b, scores, transform);
  if (c.wants(0)) {
    if (labels.empty()) fail(Code::UnsupportedFeature, "labels that are strings are not supported; use the scores");
    if (scores.dim(1) == 1) {
      const Value chosen = b.lessOrEqual(b.scalarLike(scores, transform == "NONE" ? 0 : 0.5), scores);
      c.out(0, b.gather(b.ints({0, labels.front()}), b.reshaped(b.casted(chosen, ElemKind::Int64), {scores.dim(0)})));
    } else {
      if (static_cast<int64_t>(labels.size()) != scores.dim(1))
        fail(Code::BadNode, fmt::format("expected {} labels, got {}", scores.dim(1), labels.size()));
      c.out(0, b.gather(b.ints(labels), b.argReduce(scores, {.kind = "max", .axis = 1, .keepdims = false})));
    }
  } else {
    c.out(0, Imported::none());
  }
  c.out(1, b.casted(scores, ElemKind::Float32));
}

void checkFeatures(std::string_view name, size_t count, Value x) {
  const int64_t features = x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  if (count != 1 && static_cast<int64_t>(count) != features)
    fail(Code::BadNode, fmt::format("expected 1 or {} entries in '{}', got {}", features, name, count));
}

void scaler(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const std::vector<double> offset = c.reals("offset", {0}), scale = c.reals("scale", {1});
  checkFeatures("offset", offset.size(), x);
  checkFeatures("scale", scale.size(), x);
  const ElemKind kind = x.kind() == ElemKind::Float32 ? ElemKind::Float32 : ElemKind::Float64;
  const Value moved = b.sub(b.casted(x, kind), perFeature(b, kind, offset));
  c.out(b.casted(b.mul(moved, perFeature(b, kind, scale)), ElemKind::Float32));
}

void normalizer(OpImport& c) {
  Builder& b = c.b;
  const std::string norm = c.word("norm", "MAX");
  const Value x = samplesOf(c);
  Value size;
  if (norm == "MAX")
    size = b.reduced(b.abs(x), "max", {1});
  else if (norm == "L1")
    size = b.reduced(b.abs(x), "sum", {1});
  else if (norm == "L2")
    size = b.sqrt(b.reduced(b.mul(x, x), "sum", {1}));
  else
    fail(Code::BadNode, fmt::format("expected 'norm' MAX, L1 or L2, got '{}'", norm));
  const Value y = b.div(x, b.max(size, b.scalarLike(size, 1e-30)));
  c.out(b.casted(b.reshaped(y, c.in(0).shape().dims()), ElemKind::Float32));
}

void binarizer(OpImport& c) {
  const Value x = c.in(0);
  c.out(c.b.casted(c.b.less(c.b.scalarLike(x, c.real("threshold", 0)), x), x.kind()));
}

void arrayFeatureExtractor(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0).rank() < 2 ? b.reshaped(c.in(0), {1, c.in(0).type().elements()}) : c.in(0);
  const Value indices = b.reshaped(c.in(1), {c.in(1).type().elements()});
  c.out(b.gather(x, indices, {.axis = x.rank() - 1}));
}

void imputer(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const bool floats = c.hasAttr("imputed_value_floats");
  std::vector<double> values = c.reals("imputed_value_floats");
  if (!floats)
    for (const int64_t v : c.ints("imputed_value_int64s")) values.push_back(static_cast<double>(v));
  checkFeatures("imputed_value", values.size(), x);
  const double replaced =
      floats ? c.real("replaced_value_float", 0) : static_cast<double>(c.integer("replaced_value_int64", 0));
  const Value missing = std::isnan(replaced) ? b.isNan(x) : b.equal(x, b.scalarLike(x, replaced));
  c.out(b.where(missing, perFeature(b, x.kind(), values), x));
}

// For each element of x the position of the last key that equals it, and whether there is one.
struct Lookup {
  Value position, found;
};
Lookup lookedUp(Builder& b, Value x, const Tensor& keys) {
  const Value table = b.casted(b.constant(keys), x.kind());
  const Value element = unsqueezed(b, x, x.rank());
  Value equal = b.equal(element, table);
  const std::vector<double> numbers = keys.doubles();
  if (isFloat(x.kind()) && std::any_of(numbers.begin(), numbers.end(), [](double v) { return std::isnan(v); }))
    equal = b.logicalOr(equal, b.logicalAnd(b.isNan(element), b.isNan(table)));
  const Value flags = b.casted(equal, ElemKind::UInt8);
  return {b.argReduce(flags, {.kind = "max", .axis = x.rank(), .keepdims = false, .last = true}),
          b.reduced(equal, "max", {x.rank()}, false)};
}

// A list of numbers in one of the attributes PREFIX_floats, PREFIX_int64s and PREFIX_tensor.
Tensor numbersOf(const OpImport& c, const std::string& prefix) {
  if (c.hasAttr(prefix + "_tensor")) return c.tensor(prefix + "_tensor");
  if (c.hasAttr(prefix + "_floats")) {
    const std::vector<double> values = c.reals(prefix + "_floats");
    return Tensor::of(Type(ElemKind::Float32, Shape{static_cast<int64_t>(values.size())}), values);
  }
  if (!c.hasAttr(prefix + "_int64s"))
    fail(Code::UnsupportedFeature, "keys and values that are strings are not supported");
  return Tensor::ints(c.ints(prefix + "_int64s"));
}

void labelEncoder(OpImport& c) {
  Builder& b = c.b;
  const Tensor keys = numbersOf(c, "keys"), values = numbersOf(c, "values");
  const int64_t count = keys.type().elements();
  if (count != values.type().elements() || count == 0 || keys.type().rank() != 1 || values.type().rank() != 1)
    fail(Code::BadNode,
         fmt::format("expected as many keys as values, got {} and {}", keys.type().text(), values.type().text()));
  const ElemKind kind = values.type().kind();
  Tensor otherwise = Tensor::scalar(
      kind, isFloat(kind) ? c.real("default_float", -0.0) : static_cast<double>(c.integer("default_int64", -1)));
  if (c.hasAttr("default_tensor")) otherwise = c.tensor("default_tensor");
  if (otherwise.type().elements() != 1 || otherwise.type().kind() != kind)
    fail(Code::BadNode,
         fmt::format("expected one default of kind {}, got {}", elemName(kind), otherwise.type().text()));
  const Lookup found = lookedUp(b, c.in(0), keys);
  c.out(b.where(found.found, b.gather(b.constant(values), found.position), b.reshaped(b.constant(otherwise), {})));
}

void oneHotEncoder(OpImport& c) {
  Builder& b = c.b;
  const std::vector<int64_t> categories = c.ints("cats_int64s");
  const auto count = static_cast<int64_t>(categories.size());
  if (count == 0) fail(Code::UnsupportedFeature, "categories that are strings are not supported");
  const Lookup found = lookedUp(b, c.in(0), Tensor::ints(categories));
  const Value none = b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{count}));
  const Value position = b.where(found.found, found.position, none);
  // Without a row for unknown categories, one of them is an index outside of the table.
  const int64_t rows = count + (c.flag("zeros", true) ? 1 : 0);
  std::vector<double> identity(static_cast<size_t>(rows * count), 0);
  for (int64_t i = 0; i < count; ++i) identity[static_cast<size_t>(i * count + i)] = 1;
  c.out(b.gather(b.constant(Tensor::of(Type(ElemKind::Float32, Shape{rows, count}), identity)), position));
}

void featureVectorizer(OpImport& c) {
  Builder& b = c.b;
  const std::vector<int64_t> widths = c.ints("inputdimensions");
  if (static_cast<int>(widths.size()) != c.inputs() || widths.empty())
    fail(Code::BadNode, fmt::format("expected a width for each of {} inputs, got {}", c.inputs(), listText(widths)));
  std::vector<Value> parts;
  for (int i = 0; i < c.inputs(); ++i) {
    Value x = b.casted(c.in(i), ElemKind::Float32);
    if (x.rank() == 1) x = unsqueezed(b, x, 1);
    if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected inputs with 1 or 2 axes, got {}", x.type().text()));
    parts.push_back(paddedOrCropped(b, x, {0, 0}, {0, widths[static_cast<size_t>(i)] - x.dim(1)}, b.scalarLike(x, 0)));
  }
  c.out(b.concat(parts, {.axis = 1}));
}

}  // namespace

std::span<const OpRow> mlRows() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr OpRow rows[] = {
      {"LinearRegressor", linearRegressor, 1, INT64_MAX, kMl},
      {"LinearClassifier", linearClassifier, 1, INT64_MAX, kMl},
      {"Scaler", scaler, 1, INT64_MAX, kMl},
      {"Normalizer", normalizer, 1, INT64_MAX, kMl},
      {"Binarizer", binarizer, 1, INT64_MAX, kMl},
      {"ArrayFeatureExtractor", arrayFeatureExtractor, 1, INT64_MAX, kMl},
      {"Imputer", imputer, 1, INT64_MAX, kMl},
      {"LabelEncoder", labelEncoder, 2, INT64_MAX, kMl},
      {"OneHotEncoder", oneHotEncoder, 1, INT64_MAX, kMl},
      {"FeatureVectorizer", featureVectorizer, 1, INT64_MAX, kMl},
  };
  return rows;
}

}  // namespace aglow::onnx
