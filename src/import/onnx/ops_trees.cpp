// The tree ensembles of ai.onnx.ml in their two encodings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_trees.h"

namespace aglow::onnx {

namespace {

using Test = Forest::Test;

// Numbers in an attribute, or in the tensor that newer versions have instead.
std::vector<double> realsOrTensor(const OpImport& c, const std::string& name) {
  return c.hasAttr(name + "_as_tensor") ? c.tensor(name + "_as_tensor").doubles() : c.reals(name);
}

template <class T>
void checkLength(std::string_view name, const std::vector<T>& list, size_t expected) {
  if (list.size() != expected)
    fail(Code::BadNode, fmt::format("expected {} entries in '{}', got {}", expected, name, list.size()));
}

std::vector<int64_t> list(const OpImport& c, std::string_view name, size_t expected) {
  std::vector<int64_t> values = c.ints(name);
  checkLength(name, values, expected);
  return values;
}

Value samplesOf(OpImport& c) {
  Value x = c.in(0);
  if (x.rank() == 1) x = unsqueezed(c.b, x, 0);
  return x.kind() == ElemKind::Float64 ? x : c.b.casted(x, ElemKind::Float32);
}

// Makes a node's test one of membership: a chain of tests for equality.
void addMembership(Forest& forest, size_t node, const std::vector<double>& members) {
  Forest::TreeNode last = forest.nodes[node];
  last.test = Test::Equal;
  last.split = members.empty() ? NAN : members.front();
  const int64_t otherwise = last.onFalse;
  for (size_t i = members.size(); i > 1; --i) {
    Forest::TreeNode next = last;
    next.split = members[i - 1];
    next.onFalse = i == members.size() ? otherwise : static_cast<int64_t>(forest.nodes.size()) - 1;
    forest.nodes.push_back(next);
  }
  if (members.size() > 1) last.onFalse = static_cast<int64_t>(forest.nodes.size()) - 1;
  forest.nodes[node] = last;
}

// The older encoding: nodes are named by the numbers of their tree and within it, and leaves are nodes.
Forest namedForest(const OpImport& c, const std::string& prefix, int64_t targets) {
  static const std::map<std::string, Test> kTests = {
      {"BRANCH_LEQ", Test::LessOrEqual}, {"BRANCH_LT", Test::Less},  {"BRANCH_GTE", Test::GreaterOrEqual},
      {"BRANCH_GT", Test::Greater},      {"BRANCH_EQ", Test::Equal}, {"BRANCH_NEQ", Test::NotEqual}};
  const std::vector<int64_t> trees = c.ints("nodes_treeids");
  const size_t count = trees.size();
  const std::vector<int64_t> ids = list(c, "nodes_nodeids", count), features = list(c, "nodes_featureids", count),
                             onTrue = list(c, "nodes_truenodeids", count),
                             onFalse = list(c, "nodes_falsenodeids", count);
  const std::vector<std::string> modes = c.words("nodes_modes");
  const std::vector<double> splits = realsOrTensor(c, "nodes_values");
  const std::vector<int64_t> missing = c.ints("nodes_missing_value_tracks_true", std::vector<int64_t>(count, 0));
  checkLength("nodes_modes", modes, count);
  checkLength("nodes_values", splits, count);
  checkLength("nodes_missing_value_tracks_true", missing, count);

  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  for (size_t i = 0; i < count; ++i)
    if (!places.try_emplace({trees[i], ids[i]}, static_cast<int64_t>(i)).second)
      fail(Code::BadNode, fmt::format("node {} of tree {} is defined twice", ids[i], trees[i]));
  const auto placeOf = [&](int64_t tree, int64_t id) {
    const auto it = places.find({tree, id});
    if (it == places.end()) fail(Code::BadNode, fmt::format("tree {} has no node {}", tree, id));
    return it->second;
  };
  Forest forest;
  forest.targets = targets;
  std::set<int64_t> successors;
  for (size_t i = 0; i < count; ++i) {
    const auto self = static_cast<int64_t>(i);
    if (modes[i] == "LEAF") {
      forest.nodes.push_back({.onTrue = self, .onFalse = self});
      continue;
    }
    const auto test = kTests.find(modes[i]);
    if (test == kTests.end()) fail(Code::BadNode, fmt::format("expected a known mode of nodes, got '{}'", modes[i]));
    forest.nodes.push_back({.test = test->second,
                            .feature = features[i],
                            .split = splits[i],
                            .missingIsTrue = missing[i] != 0,
                            .onTrue = placeOf(trees[i], onTrue[i]),
                            .onFalse = placeOf(trees[i], onFalse[i])});
    if (forest.nodes.back().onTrue == self && forest.nodes.back().onFalse == self)
      fail(Code::BadNode, fmt::format("node {} of tree {} leads to itself", ids[i], trees[i]));
    successors.insert({forest.nodes.back().onTrue, forest.nodes.back().onFalse});
  }
  // A tree's root is the node to which no other leads.
  std::set<int64_t> rooted;
  for (size_t i = 0; i < count; ++i) {
    if (successors.contains(static_cast<int64_t>(i))) continue;
    if (!rooted.insert(trees[i]).second) fail(Code::BadNode, fmt::format("tree {} has more than one root", trees[i]));
    forest.roots.push_back(static_cast<int64_t>(i));
  }
  const std::vector<double> weights = realsOrTensor(c, prefix + "_weights");
  const size_t shares = weights.size();
  const std::vector<int64_t> shareTrees = list(c, prefix + "_treeids", shares),
                             shareNodes = list(c, prefix + "_nodeids", shares),
                             targetsOf = list(c, prefix + "_ids", shares);
  for (size_t i = 0; i < shares; ++i)
    forest.shares.push_back({placeOf(shareTrees[i], shareNodes[i]), targetsOf[i], weights[i]});
  return forest;
}

void regressor(OpImport& c) {
  Builder& b = c.b;
  static const std::map<std::string, std::string> kJoinings = {
      {"SUM", "sum"}, {"AVERAGE", "mean"}, {"MIN", "min"}, {"MAX", "max"}};
  const auto joining = kJoinings.find(c.word("aggregate_function", "SUM"));
  if (joining == kJoinings.end()) fail(Code::BadNode, "expected 'aggregate_function' SUM, AVERAGE, MIN or MAX");
  const Forest forest = namedForest(c, "target", c.integer("n_targets", 1));
  Value y = walked(b, samplesOf(c), forest, joining->second);
  if (const std::vector<double> base = realsOrTensor(c, "base_values"); !base.empty()) {
    checkLength("base_values", base, static_cast<size_t>(forest.targets));
    y = b.add(y, b.constant(Tensor::of(Type(y.kind(), Shape{forest.targets}), base)));
  }
  c.out(b.casted(postTransformed(b, y, c.word("post_transform", "NONE")), ElemKind::Float32));
}

// Scores of two classes from that of one. Weights that are all positive give a probability, mixed ones a distance from
// the border, as transforms expect it.
Value bothClasses(Builder& b, Value score, bool probability, const std::string& transform) {
  const bool plain = transform == "NONE" || transform == "PROBIT";
  const Value other = plain && probability ? b.sub(b.scalarLike(score, 1), score) : b.neg(score);
  return postTransformed(b, b.concat({other, score}, {.axis = 1}), transform);
}

void classifier(OpImport& c) {
  Builder& b = c.b;
  const std::vector<int64_t> labels = c.ints("classlabels_int64s");
  const std::vector<std::string> names = c.words("classlabels_strings");
  const auto classes = static_cast<int64_t>(std::max(labels.size(), names.size()));
  if (classes == 0) fail(Code::BadNode, "expected labels of classes");
  Forest forest = namedForest(c, "class", classes);
  std::set<int64_t> ids;
  bool positive = true;
  for (const Forest::Share& share : forest.shares) {
    ids.insert(share.target);
    positive = positive && share.weight >= 0;
  }
  const std::string transform = c.word("post_transform", "NONE");
  const std::vector<double> base = realsOrTensor(c, "base_values");
  Value scores, index;
  if (classes <= 2 && ids.size() == 1) {
    for (Forest::Share& share : forest.shares) share.target = 0;
    forest.targets = 1;
    Value score = walked(b, samplesOf(c), forest, "sum");
    if (!base.empty()) score = b.add(score, b.scalarLike(score, base.front()));
    index = b.casted(b.less(b.scalarLike(score, positive ? 0.5 : 0), score), ElemKind::Int64);
    index = b.reshaped(index, {score.dim(0)});
    scores = bothClasses(b, score, positive, transform);
  } else {
    scores = walked(b, samplesOf(c), forest, "sum");
    if (!base.empty()) {
      checkLength("base_values", base, static_cast<size_t>(classes));
      scores = b.add(scores, b.constant(Tensor::of(Type(scores.kind(), Shape{classes}), base)));
    }
    index = b.argReduce(scores, {.kind = "max", .axis = 1, .keepdims = false});
    scores = postTransformed(b, scores, transform);
  }
  if (c.wants(0)) {
    if (labels.empty()) fail(Code::UnsupportedFeature, "labels that are strings are not supported; use the scores");
    // A single label stands for the positive class, against 0.
    const std::vector<int64_t> known =
        labels.size() == 1 && ids.size() == 1 ? std::vector<int64_t>{0, labels[0]} : labels;
    c.out(0, b.gather(b.ints(known), index));
  } else {
    c.out(0, Imported::none());
  }
  c.out(1, b.casted(scores, ElemKind::Float32));
}

// The newer encoding: inner nodes and leaves in lists of their own.
void treeEnsemble(OpImport& c) {
  Builder& b = c.b;
  static constexpr Test kTests[] = {Test::LessOrEqual, Test::Less,  Test::GreaterOrEqual,
                                    Test::Greater,     Test::Equal, Test::NotEqual};
  static constexpr int64_t kMember = 6;
  const std::vector<int64_t> features = c.ints("nodes_featureids");
  const size_t count = features.size();
  const std::vector<int64_t> onTrue = list(c, "nodes_truenodeids", count),
                             onFalse = list(c, "nodes_falsenodeids", count),
                             trueLeafs = list(c, "nodes_trueleafs", count),
                             falseLeafs = list(c, "nodes_falseleafs", count), roots = c.ints("tree_roots"),
                             leafTargets = c.ints("leaf_targetids");
  const std::vector<int64_t> missing = c.ints("nodes_missing_value_tracks_true", std::vector<int64_t>(count, 0));
  const std::vector<int64_t> modes = c.tensor("nodes_modes").toInts();
  const std::vector<double> splits = c.tensor("nodes_splits").doubles(), weights = c.tensor("leaf_weights").doubles();
  std::vector<double> members;
  if (c.hasAttr("membership_values")) members = c.tensor("membership_values").doubles();
  checkLength("nodes_modes", modes, count);
  checkLength("nodes_splits", splits, count);
  checkLength("nodes_missing_value_tracks_true", missing, count);
  checkLength("leaf_targetids", leafTargets, weights.size());

  // Leaves follow the inner nodes.
  Forest forest;
  forest.targets = c.integer("n_targets", 1);
  const auto inner = static_cast<int64_t>(count), leaves = static_cast<int64_t>(weights.size());
  const auto successor = [&](int64_t index, int64_t leaf) {
    if (index < 0 || index >= (leaf != 0 ? leaves : inner))
      fail(Code::BadNode, fmt::format("expected successors inside of the lists, got {}", index));
    return leaf != 0 ? inner + index : index;
  };
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] < 0 || modes[i] > kMember)
      fail(Code::BadNode, fmt::format("expected modes of nodes from 0 to {}, got {}", kMember, modes[i]));
    forest.nodes.push_back({.test = modes[i] == kMember ? Test::Equal : kTests[modes[i]],
                            .feature = features[i],
                            .split = splits[i],
                            .missingIsTrue = missing[i] != 0,
                            .onTrue = successor(onTrue[i], trueLeafs[i]),
                            .onFalse = successor(onFalse[i], falseLeafs[i])});
  }
  for (int64_t i = 0; i < leaves; ++i) {
    forest.nodes.push_back({.onTrue = inner + i, .onFalse = inner + i});
    forest.shares.push_back({inner + i, leafTargets[static_cast<size_t>(i)], weights[static_cast<size_t>(i)]});
  }
  for (const int64_t root : roots) forest.roots.push_back(successor(root, 0));
  // The members of a node's set end with a NaN.
  auto next = members.begin();
  for (size_t i = 0; i < count; ++i) {
    if (modes[i] != kMember) continue;
    const auto end = std::find_if(next, members.end(), [](double v) { return std::isnan(v); });
    if (end == members.end()) fail(Code::BadNode, "expected 'membership_values' for every node that asks for members");
    addMembership(forest, i, {next, end});
    next = end + 1;
  }

  static constexpr std::string_view kJoinings[] = {"mean", "sum", "min", "max"};
  static constexpr std::string_view kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t joining = c.integer("aggregate_function", 1), transform = c.integer("post_transform", 0);
  if (joining < 0 || joining > 3 || transform < 0 || transform > 4)
    fail(Code::BadNode,
         fmt::format("expected 'aggregate_function' from 0 to 3 and 'post_transform' from 0 to 4, got {} and {}",
                     joining, transform));
  const Value y = walked(b, samplesOf(c), forest, std::string(kJoinings[joining]));
  c.out(b.casted(postTransformed(b, y, std::string(kTransforms[transform])), c.in(0).kind()));
}

}  // namespace

std::span<const OpRow> treeRows() {
  static constexpr std::string_view kMl = "ai.onnx.ml";
  static constexpr OpRow rows[] = {{"TreeEnsembleRegressor", regressor, 1, INT64_MAX, kMl},
                                   {"TreeEnsembleClassifier", classifier, 1, INT64_MAX, kMl},
                                   {"TreeEnsemble", treeEnsemble, 5, INT64_MAX, kMl}};
  return rows;
}

}  // namespace aglow::onnx
