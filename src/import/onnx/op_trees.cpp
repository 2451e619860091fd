#include "import/onnx/op_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "import/onnx/op_support.h"

namespace aglow::onnx {

namespace {

using Test = Forest::Test;

constexpr int64_t kMaxDepth = 4096;

// What nodes and features are counted in: tables of it are half as large as of i64, and stay in cache.
constexpr ElemKind kNumbers = ElemKind::Int32;

Value numbers(Builder& b, const std::vector<int64_t>& values) {
  return b.constant(Tensor::of(Type(kNumbers, Shape{static_cast<int64_t>(values.size())}), values));
}

bool isLeaf(const Forest& forest, int64_t node) {
  const Forest::TreeNode& n = forest.nodes[static_cast<size_t>(node)];
  return n.onTrue == node && n.onFalse == node;
}

void checkIndices(const Forest& forest, int64_t features) {
  const auto count = static_cast<int64_t>(forest.nodes.size());
  const auto check = [](int64_t index, int64_t limit, std::string_view what) {
    if (index < 0 || index >= limit)
      fail(Code::BadNode, fmt::format("expected {} below {}, got {}", what, limit, index));
  };
  for (const int64_t root : forest.roots) check(root, count, "a tree's root");
  for (const Forest::Share& share : forest.shares) {
    check(share.node, count, "a leaf");
    check(share.target, forest.targets, "a target");
  }
  for (int64_t i = 0; i < count; ++i) {
    const Forest::TreeNode& node = forest.nodes[static_cast<size_t>(i)];
    check(node.onTrue, count, "a successor");
    check(node.onFalse, count, "a successor");
    if (!isLeaf(forest, i)) check(node.feature, features, "a feature");
  }
}

// The steps until all samples have reached leaves.
int64_t depthOf(const Forest& forest) {
  std::set<int64_t> level(forest.roots.begin(), forest.roots.end());
  for (int64_t depth = 0;; ++depth) {
    std::set<int64_t> next;
    for (const int64_t node : level) {
      if (isLeaf(forest, node)) continue;
      next.insert(forest.nodes[static_cast<size_t>(node)].onTrue);
      next.insert(forest.nodes[static_cast<size_t>(node)].onFalse);
    }
    if (next.empty()) return depth;
    if (depth >= static_cast<int64_t>(forest.nodes.size())) fail(Code::BadNode, "the nodes of a tree form a circle");
    if (depth >= kMaxDepth) fail(Code::LimitReached, fmt::format("a tree is deeper than {} nodes", kMaxDepth));
    level = std::move(next);
  }
}

Value tested(Builder& b, Test test, Value x, Value split) {
  switch (test) {
    case Test::LessOrEqual:
      return b.lessOrEqual(x, split);
    case Test::Less:
      return b.less(x, split);
    case Test::GreaterOrEqual:
      return b.lessOrEqual(split, x);
    case Test::Greater:
      return b.less(split, x);
    case Test::Equal:
      return b.equal(x, split);
    case Test::NotEqual:
      break;
  }
  return b.logicalNot(b.equal(x, split));
}

// The nodes' fields as constants, to be gathered by the nodes at which samples stand.
class Walk {
public:
  Walk(Builder& builder, Value samples, const Forest& forest) : b(builder), x(samples), forest_(forest) {
    features_ = field(kNumbers, [](const auto& n) { return static_cast<double>(n.feature); });
    splits_ = field(x.kind(), [](const auto& n) { return n.split; });
    std::vector<int64_t> successors;
    for (const Forest::TreeNode& node : forest.nodes) successors.insert(successors.end(), {node.onFalse, node.onTrue});
    successors_ = numbers(b, successors);
    tests_ = field(ElemKind::UInt8, [](const auto& n) { return static_cast<double>(n.test); });
    for (size_t i = 0; i < forest.nodes.size(); ++i)
      if (!isLeaf(forest, static_cast<int64_t>(i))) used_.insert(forest.nodes[i].test);
    if (std::any_of(forest.nodes.begin(), forest.nodes.end(), [](const auto& n) { return n.missingIsTrue; }))
      missing_ = field(ElemKind::Bool, [](const auto& n) { return n.missingIsTrue ? 1.0 : 0.0; });
  }

  // From the nodes at which samples stand, [samples, trees], to their successors.
  Value step(Value at) {
    const Value value = b.gatherElements(x, b.gather(features_, at), {.axis = 1});
    const Value split = b.gather(splits_, at);
    Value holds;
    for (const Test test : used_) {
      const Value result = tested(b, test, value, split);
      const Value number = b.scalar(ElemKind::UInt8, static_cast<double>(test));
      holds = holds ? b.where(b.equal(b.gather(tests_, at), number), result, holds) : result;
    }
    if (missing_) holds = b.logicalOr(holds, b.logicalAnd(b.isNan(value), b.gather(missing_, at)));
    const Value pair = b.mul(at, b.scalar(kNumbers, 2));
    return b.gather(successors_, b.add(pair, b.casted(holds, kNumbers)));
  }

private:
  template <class F>
  Value field(ElemKind kind, F get) {
    std::vector<double> values;
    values.reserve(forest_.nodes.size());
    for (const Forest::TreeNode& node : forest_.nodes) values.push_back(get(node));
    return b.constant(Tensor::of(Type(kind, Shape{static_cast<int64_t>(values.size())}), values));
  }

  Builder& b;
  Value x;
  const Forest& forest_;
  Value features_, splits_, successors_, tests_, missing_;
  std::set<Test> used_;
};

}  // namespace

Value walked(Builder& b, Value x, const Forest& forest, const std::string& joining) {
  const auto nodes = static_cast<int64_t>(forest.nodes.size()), trees = static_cast<int64_t>(forest.roots.size());
  if (x.rank() != 2 || nodes == 0 || trees == 0 || forest.targets < 1)
    fail(Code::BadNode, fmt::format("expected [samples, features] and trees, got {} and {} trees with {} nodes",
                                    x.type().text(), trees, nodes));
  checkIndices(forest, x.dim(1));
  constexpr int64_t kMost = int64_t{1} << 27;  // twice as many fit into kNumbers
  if (x.dim(1) > kMost) fail(Code::TooLarge, fmt::format("{} features are more than {}", x.dim(1), kMost));
  if (forest.targets > kMost / nodes)
    fail(Code::TooLarge, fmt::format("a table of {} nodes by {} targets is too large", nodes, forest.targets));
  const int64_t depth = depthOf(forest);
  Value at = b.expand(numbers(b, forest.roots), {.shape = {x.dim(0), trees}});
  if (depth > 0) {
    Walk walk(b, x, forest);
    for (int64_t level = 0; level < depth; ++level) at = walk.step(at);
  }

  // A target to which a leaf adds nothing does not take part in a minimum or maximum.
  const bool sums = joining == "sum" || joining == "mean";
  const double infinity = std::numeric_limits<double>::infinity();
  const double none = sums ? 0 : joining == "min" ? infinity : -infinity;
  std::vector<double> table(static_cast<size_t>(nodes * forest.targets), none);
  for (const Forest::Share& share : forest.shares) {
    double& entry = table[static_cast<size_t>(share.node * forest.targets + share.target)];
    entry = sums               ? entry + share.weight
            : joining == "min" ? std::min(entry, share.weight)
                               : std::max(entry, share.weight);
  }
  const Value weights = b.constant(Tensor::of(Type(x.kind(), Shape{nodes, forest.targets}), table));
  const Value joined = b.reduced(b.gather(weights, at), joining, {1}, false);
  if (sums) return joined;
  return b.where(b.equal(joined, b.scalarLike(joined, none)), b.scalarLike(joined, 0), joined);
}

namespace {

// exp(x) over its sum, but zeros stay zeros.
Value softmaxZero(Builder& b, Value x) {
  const Value most = b.reduced(x, "max", {1}), tiny = b.scalarLike(x, 1e-7);
  const Value powers = b.where(b.less(tiny, b.abs(x)), b.exp(b.sub(x, most)), b.mul(x, b.exp(b.neg(most))));
  const Value sum = b.reduced(powers, "sum", {1}), zero = b.scalarLike(x, 0);
  return b.where(b.equal(sum, zero), b.scalarLike(x, 0.5), b.div(powers, sum));
}

// The inverse of the normal distribution's cumulative function, through an approximation of erf's inverse.
Value probit(Builder& b, Value p) {
  const auto n = [&](double value) { return b.scalarLike(p, value); };
  const Value x = b.sub(b.mul(p, n(2)), n(1));
  const Value product = b.mul(b.sub(n(1), x), b.add(n(1), x)), log = b.log(product);
  const Value v = b.add(b.mul(log, n(0.5)), n(2 / (3.14159265358979323846 * 0.147)));
  const Value root = b.sqrt(b.sub(b.sqrt(b.sub(b.mul(v, v), b.mul(log, n(1 / 0.147)))), v));
  const Value inverse = b.where(b.less(x, n(0)), b.neg(root), root);
  return b.mul(n(1.41421356), b.where(b.equal(product, n(0)), n(0), inverse));
}

}  // namespace

Value postTransformed(Builder& b, Value scores, const std::string& transform) {
  if (transform == "NONE") return scores;
  if (transform == "SOFTMAX") return b.softmax(scores, {.axis = 1});
  if (transform == "LOGISTIC") return b.sigmoid(scores);
  if (transform == "SOFTMAX_ZERO") return softmaxZero(b, scores);
  if (transform == "PROBIT") return probit(b, scores);
  fail(Code::BadNode,
       fmt::format("expected 'post_transform' NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, got '{}'", transform));
}

}  // namespace aglow::onnx
