// Decision trees evaluated all at once: every sample walks down all trees in step, one level at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace aglow::onnx {

struct Forest {
  enum class Test : uint8_t { LessOrEqual, Less, GreaterOrEqual, Greater, Equal, NotEqual };

  // An inner node; or a leaf, which is its own successor.
  struct TreeNode {
    Test test = Test::LessOrEqual;
    int64_t feature = 0;
    double split = 0;
    bool missingIsTrue = false;
    int64_t onTrue = 0, onFalse = 0;
  };
  // What a leaf adds to a target.
  struct Share {
    int64_t node;
    int64_t target;
    double weight;
  };

  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  std::vector<Share> shares;
  int64_t targets = 1;
};

// The trees' shares for each row of x [samples, features], joined over the trees by "sum", "mean", "min" or "max":
// [samples, targets] of x's kind. BadNode when indices lie outside, or nodes form a circle.
Value walked(Builder& b, Value x, const Forest& forest, const std::string& joining);

// Applies NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT to rows of scores.
Value postTransformed(Builder& b, Value scores, const std::string& transform);

}  // namespace aglow::onnx
