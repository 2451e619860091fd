// Support vector machines of ai.onnx.ml: kernels between samples and support vectors, pairwise decisions, votes and
// probabilities, each for all samples at once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_trees.h"

namespace aglow::onnx {

namespace {

Value samplesOf(OpImport& c) {
  Value x = c.in(0);
  if (x.rank() == 1) x = unsqueezed(c.b, x, 0);
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected [samples, features], got {}", x.type().text()));
  return x.kind() == ElemKind::Float64 ? x : c.b.casted(x, ElemKind::Float32);
}

Value matrixOf(Builder& b, ElemKind kind, int64_t rows, int64_t columns, const std::vector<double>& values) {
  return b.constant(Tensor::of(Type(kind, Shape{rows, columns}), values));
}

// How alike samples and vectors are, [samples, vectors].
Value kernelOf(OpImport& c, Value x, const std::vector<double>& vectors, int64_t count, std::string kind) {
  Builder& b = c.b;
  const int64_t features = x.dim(1);
  if (count < 1 || features < 1 || static_cast<int64_t>(vectors.size()) / features != count ||
      static_cast<int64_t>(vectors.size()) % features != 0)
    fail(Code::BadNode,
         fmt::format("expected {} vectors of {} features, got {} numbers", count, features, vectors.size()));
  const std::vector<double> parameters = c.reals("kernel_params", {0, 0, 0});
  if (parameters.size() != 3)
    fail(Code::BadNode,
         fmt::format("expected gamma, coef0 and degree in 'kernel_params', got {} entries", parameters.size()));
  const Value table = matrixOf(b, x.kind(), count, features, vectors);
  const auto number = [&](double value) { return b.scalarLike(x, value); };
  if (kind == "RBF") {
    const Value difference = b.sub(unsqueezed(b, x, 1), unsqueezed(b, table, 0));
    const Value distance = b.reduced(b.mul(difference, difference), "sum", {2}, false);
    return b.exp(b.mul(distance, number(-parameters[0])));
  }
  const Value product = b.matMul(x, b.transposed(table, {1, 0}));
  if (kind == "LINEAR") return product;
  const Value moved = b.add(b.mul(product, number(parameters[0])), number(parameters[1]));
  if (kind == "SIGMOID") return b.tanh(moved);
  if (kind == "POLY") return b.pow(moved, number(parameters[2]));
  fail(Code::BadNode, fmt::format("expected 'kernel_type' LINEAR, POLY, RBF or SIGMOID, got '{}'", kind));
}

std::vector<double> offsetsOf(const OpImport& c, size_t count) {
  std::vector<double> rho = c.reals("rho");
  if (rho.size() < count) fail(Code::BadNode, fmt::format("expected {} entries in 'rho', got {}", count, rho.size()));
  rho.resize(count);
  return rho;
}

void svmRegressor(OpImport& c) {
  Builder& b = c.b;
  const Value x = samplesOf(c);
  const int64_t vectors = c.integer("n_supports", 0);
  const std::vector<double> coefficients = c.reals("coefficients");
  const double rho = offsetsOf(c, 1).front();
  Value y;
  if (vectors > 0) {
    if (static_cast<int64_t>(coefficients.size()) != vectors)
      fail(Code::BadNode, fmt::format("expected {} coefficients, got {}", vectors, coefficients.size()));
    const Value kernel = kernelOf(c, x, c.reals("support_vectors"), vectors, c.word("kernel_type", "LINEAR"));
    y = b.matMul(kernel, matrixOf(b, x.kind(), vectors, 1, coefficients));
  } else {
    y = kernelOf(c, x, coefficients, 1, "LINEAR");
  }
  y = b.add(y, b.scalarLike(y, rho));
  if (c.flag("one_class")) y = b.where(b.less(b.scalarLike(y, 0), y), b.scalarLike(y, 1), b.scalarLike(y, -1));
  c.out(b.casted(postTransformed(b, y, c.word("post_transform", "NONE")), ElemKind::Float32));
}

// ---------------------------------------------------------------- classes

// A decision between each two of the classes, in the order (0, 1), (0, 2) ... (1, 2) ...
struct Pairs {
  int64_t classes;
  std::vector<std::pair<int64_t, int64_t>> all;

  explicit Pairs(int64_t count) : classes(count) {
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = i + 1; j < count; ++j) all.emplace_back(i, j);
  }
  int64_t size() const { return static_cast<int64_t>(all.size()); }

  // [pairs, classes]: the value for the first, or the second, class of each pair.
  Value matrix(Builder& b, ElemKind kind, double first, double second) const {
    std::vector<double> values(all.size() * static_cast<size_t>(classes), 0);
    for (size_t p = 0; p < all.size(); ++p) {
      values[p * static_cast<size_t>(classes) + static_cast<size_t>(all[p].first)] = first;
      values[p * static_cast<size_t>(classes) + static_cast<size_t>(all[p].second)] = second;
    }
    return matrixOf(b, kind, size(), classes, values);
  }
};

// Scores [samples, pairs]. The coefficients of a vector for the other classes lie in rows, its own class left out.
Value pairScores(OpImport& c, Value kernel, const Pairs& pairs, const std::vector<int64_t>& perClass) {
  Builder& b = c.b;
  const std::vector<double> coefficients = c.reals("coefficients");
  const int64_t vectors = kernel.dim(1);
  if (static_cast<int64_t>(coefficients.size()) != vectors * (pairs.classes - 1))
    fail(Code::BadNode,
         fmt::format("expected {} by {} coefficients, got {}", pairs.classes - 1, vectors, coefficients.size()));
  std::vector<double> weights(static_cast<size_t>(vectors * pairs.size()), 0);
  for (int64_t p = 0; p < pairs.size(); ++p) {
    const auto [i, j] = pairs.all[static_cast<size_t>(p)];
    const auto take = [&](int64_t owner, int64_t row) {
      const int64_t start = std::accumulate(perClass.begin(), perClass.begin() + owner, int64_t{0});
      for (int64_t v = start; v < start + perClass[static_cast<size_t>(owner)]; ++v)
        weights[static_cast<size_t>(v * pairs.size() + p)] = coefficients[static_cast<size_t>(row * vectors + v)];
    };
    take(i, j - 1);
    take(j, i);
  }
  const std::vector<double> rho = offsetsOf(c, pairs.all.size());
  const Value offsets = b.constant(Tensor::of(Type(kernel.kind(), Shape{pairs.size()}), rho));
  return b.add(b.matMul(kernel, matrixOf(b, kernel.kind(), vectors, pairs.size(), weights)), offsets);
}

Value votesOf(Builder& b, Value scores, const Pairs& pairs) {
  const Value first = b.casted(b.less(b.scalarLike(scores, 0), scores), scores.kind());
  const Value second = b.sub(b.scalarLike(scores, 1), first);
  return b.add(b.matMul(first, pairs.matrix(b, scores.kind(), 1, 0)),
               b.matMul(second, pairs.matrix(b, scores.kind(), 0, 1)));
}

// Probabilities of classes that fit best to those of the pairs: P moves towards the minimum of P^T Q P one class after
// the other, in rounds, until a sample's error is small. A few rounds do; the limit only bounds the program.
Value coupled(Builder& b, Value likely, const Pairs& pairs) {
  constexpr int kRounds = 24;
  const int64_t k = pairs.classes, samples = likely.dim(0);
  const auto number = [&](double value) { return b.scalarLike(likely, value); };
  // r [samples, k, k]: how likely the first class is against the second one.
  std::vector<int64_t> places(static_cast<size_t>(k * k), pairs.size() * 2);
  for (int64_t p = 0; p < pairs.size(); ++p) {
    const auto [i, j] = pairs.all[static_cast<size_t>(p)];
    places[static_cast<size_t>(i * k + j)] = p;
    places[static_cast<size_t>(j * k + i)] = pairs.size() + p;
  }
  const Value zeros = b.splat({.elem = likely.kind(), .shape = {samples, 1}});
  const Value both = b.concat({likely, b.sub(number(1), likely), zeros}, {.axis = 1});
  const Value r = b.reshaped(b.gather(both, b.ints(places), {.axis = 1}), {samples, k, k});
  const Value turned = b.transposed(r, {0, 2, 1});
  // Off the diagonal -r[j, i] r[i, j]; on it the squares of the column's others.
  std::vector<double> unit(static_cast<size_t>(k * k), 0);
  for (int64_t i = 0; i < k; ++i) unit[static_cast<size_t>(i * k + i)] = 1;
  const Value diagonal = b.mul(matrixOf(b, likely.kind(), k, k, unit), b.reduced(b.mul(r, r), "sum", {1}));
  const Value q = b.sub(diagonal, b.mul(r, turned));
  Value p = b.splat({.value = 1 / static_cast<double>(k), .elem = likely.kind(), .shape = {samples, k}});
  Value active;
  for (int round = 0; round < kRounds; ++round) {
    Value qp = b.reshaped(b.matMul(q, unsqueezed(b, p, 2)), {samples, k});
    Value pqp = b.reduced(b.mul(p, qp), "sum", {1});
    const Value error = b.reduced(b.abs(b.sub(qp, pqp)), "max", {1});
    const Value open = b.lessOrEqual(number(0.005 / static_cast<double>(k)), error);
    active = active ? b.logicalAnd(active, open) : open;
    Value next = p;
    for (int64_t t = 0; t < k; ++t) {
      const Value row = b.reshaped(sliced(b, q, 1, t, 1), {samples, k});
      const Value own = sliced(b, row, 1, t, 1), at = sliced(b, qp, 1, t, 1);
      const Value step = b.div(b.sub(pqp, at), own), whole = b.add(step, number(1));
      const Value gain = b.mul(step, b.add(b.mul(step, own), b.mul(at, number(2))));
      pqp = b.div(b.add(pqp, gain), b.mul(whole, whole));
      std::vector<double> here(static_cast<size_t>(k), 0);
      here[static_cast<size_t>(t)] = 1;
      next = b.div(b.add(next, b.mul(step, matrixOf(b, likely.kind(), 1, k, here))), whole);
      qp = b.div(b.add(qp, b.mul(step, row)), whole);
    }
    p = b.where(active, next, p);
  }
  return p;
}

Value probabilities(OpImport& c, Value scores, const Pairs& pairs) {
  Builder& b = c.b;
  const std::vector<double> slopes = c.reals("prob_a"), offsets = c.reals("prob_b");
  if (slopes.size() != pairs.all.size() || offsets.size() != slopes.size())
    fail(Code::BadNode, fmt::format("expected {} entries in 'prob_a' and 'prob_b', got {} and {}", pairs.size(),
                                    slopes.size(), offsets.size()));
  const auto row = [&](const std::vector<double>& values) {
    return b.constant(Tensor::of(Type(scores.kind(), Shape{pairs.size()}), values));
  };
  constexpr double kLeast = 1e-7;
  const Value likely = b.sigmoid(b.neg(b.add(b.mul(scores, row(slopes)), row(offsets))));
  const Value held = b.clip(likely, b.scalarLike(scores, kLeast), b.scalarLike(scores, 1 - kLeast));
  return coupled(b, held, pairs);
}

void svmClassifier(OpImport& c) {
  Builder& b = c.b;
  const Value x = samplesOf(c);
  std::vector<int64_t> labels = c.ints("classlabels_ints");
  const auto classes = static_cast<int64_t>(std::max(labels.size(), c.words("classlabels_strings").size()));
  constexpr int64_t kMostClasses = 256;
  if (classes < 2 || classes > kMostClasses)
    fail(Code::BadNode, fmt::format("expected from 2 to {} class labels, got {}", kMostClasses, classes));
  const std::vector<int64_t> perClass = c.ints("vectors_per_class");
  const std::string transform = c.word("post_transform", "NONE");
  const std::vector<double> coefficients = c.reals("coefficients");

  Value scores, deciding;
  if (perClass.empty()) {
    scores = kernelOf(c, x, coefficients, classes, "LINEAR");
    scores = deciding = b.add(scores, b.scalarLike(scores, offsetsOf(c, 1).front()));
  } else {
    int64_t vectors = 0;
    for (const int64_t count : perClass) {
      if (count < 0 || count > (int64_t{1} << 31)) fail(Code::BadNode, "expected counts in 'vectors_per_class'");
      vectors += count;
    }
    if (static_cast<int64_t>(perClass.size()) != classes)
      fail(Code::BadNode, fmt::format("expected {} entries in 'vectors_per_class', got {}", classes, perClass.size()));
    const Pairs pairs(classes);
    const Value kernel = kernelOf(c, x, c.reals("support_vectors"), vectors, c.word("kernel_type", "LINEAR"));
    scores = pairScores(c, kernel, pairs, perClass);
    deciding = votesOf(b, scores, pairs);
    if (!c.reals("prob_a").empty()) scores = probabilities(c, scores, pairs);
  }

  if (!c.wants(0)) {
    c.out(0, Imported::none());
  } else {
    if (labels.empty()) fail(Code::UnsupportedFeature, "labels that are strings are not supported; use the scores");
    c.out(0, b.gather(b.ints(labels), b.argReduce(deciding, {.kind = "max", .axis = 1, .keepdims = false})));
  }
  // One score for two classes is the distance from their border.
  if (scores.dim(1) == 1) scores = b.concat({b.neg(scores), scores}, {.axis = 1});
  c.out(1, b.casted(postTransformed(b, scores, transform), ElemKind::Float32));
}

}  // namespace

std::span<const OpRow> svmRows() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr OpRow rows[] = {
      {"SVMRegressor", svmRegressor, 1, INT64_MAX, kMl},
      {"SVMClassifier", svmClassifier, 1, INT64_MAX, kMl},
  };
  return rows;
}

}  // namespace aglow::onnx
