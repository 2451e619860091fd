#include "optimize/pieces.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/builder.h"
#include "ops/all_ops.h"
#include "tensor/slices.h"

namespace aglow {

namespace {

// Which constant is cut along which axis, and along which axis of the result its parts go.
struct Cutting {
  const Constant* weight = nullptr;
  int axis = 0;
  int resultAxis = 0;
  Node* transpose = nullptr;  // of the weight, where the product reads it so
};

std::optional<Cutting> cuttingOf(const Node& node) {
  if (node.predicate() || !node.input(1) || node.input(1).type().quant().axis >= 0) return {};
  const Value weight = node.input(1);
  if (node.op() == Op::Conv && node.attrs().integer("group") == 1 && isConstant(weight))
    return Cutting{.weight = asConstant(weight), .axis = 0, .resultAxis = 1};
  if (node.op() != Op::MatMul || weight.rank() != 2) return {};
  const int last = node.type().rank() - 1;
  if (isConstant(weight)) return Cutting{.weight = asConstant(weight), .axis = 1, .resultAxis = last};
  if (weight.node->op() == Op::Transpose && !weight.node->predicate() && isConstant(weight.node->input(0)) &&
      weight.node->attrs().ints("perm") == std::vector<int64_t>{1, 0})
    return Cutting{
        .weight = asConstant(weight.node->input(0)), .axis = 0, .resultAxis = last, .transpose = weight.node};
  return {};
}

class Cutter {
public:
  Cutter(Node& node, const Cutting& cutting, Evaluator& evaluator)
      : node_(node), cutting_(cutting), evaluator_(evaluator), b_(*node.function()) {
    b_.before(&node).named(node.name());
  }

  Status run(int64_t bytes) {
    const Type& type = cutting_.weight->type();
    const int64_t extent = type.dim(cutting_.axis);
    const int64_t each = std::max<int64_t>(1, bytes / (type.bytes() / extent));
    const int64_t parts = (extent + each - 1) / each, even = (extent + parts - 1) / parts;
    Attrs attrs = node_.attrs();
    attrs.set("whole", std::max(attrs.integer("whole"), extent));
    std::vector<Value> results;
    for (int64_t begin = 0; begin < extent; begin += even) {
      const int64_t count = std::min(even, extent - begin);
      std::vector<Value> inputs = node_.inputs();
      AGLOW_TRY(inputs[1], partOf(*cutting_.weight, cutting_.axis, begin, count, cutting_.transpose));
      // A bias has an element for each result.
      if (node_.op() == Op::Conv && node_.input(2)) {
        const auto* bias = asConstant(node_.input(2));
        if (bias != nullptr) {
          AGLOW_TRY(inputs[2], partOf(*bias, 0, begin, count, nullptr));
        } else {
          inputs[2] = b_.slice(node_.input(2), {.starts = {begin}, .sizes = {count}});
        }
      }
      results.push_back(b_.make(std::move(inputs), attrs)->result());
    }
    replaceAllUses(node_.result(), b_.concat(results, {.axis = cutting_.resultAxis}));
    node_.function()->erase(&node_);
    return {};
  }

private:
  // Parts of one constant are the same in all functions.
  Result<Value> partOf(const Constant& whole, int64_t axis, int64_t begin, int64_t count, const Node* transpose) {
    const std::string name =
        fmt::format("{}[{}:{}]", transpose != nullptr ? transpose->name() : whole.name(), begin, begin + count);
    Tensor part = stretchOf(whole.tensor(), axis, begin, count);
    if (transpose != nullptr) {
      const Value straight = b_.constant(part, name + ".straight");
      Node* turning = b_.make({straight}, transpose->attrs());
      AGLOW_TRY(const std::vector<Tensor> turned, evaluator_.evaluate(*turning, std::span(&part, 1)));
      turning->function()->erase(turning);
      b_.module().eraseStorage(straight.node);
      part = turned.front();
    }
    Node* there = b_.module().findStorage(name);  // of another function, or by chance
    if (there != nullptr && isConstant(there->result()) && asConstant(there->result())->tensor() == part)
      return there->result();
    return b_.constant(std::move(part), name);
  }

  Node& node_;
  const Cutting& cutting_;
  Evaluator& evaluator_;
  Builder b_;
};

}  // namespace

Result<bool> cutWeights(Function& function, int64_t bytes, Evaluator& evaluator) {
  std::vector<std::pair<Node*, Cutting>> found;
  for (const auto& node : function.nodes())
    if (const std::optional<Cutting> cutting = cuttingOf(*node);
        cutting && cutting->weight->type().bytes() > bytes && cutting->weight->type().dim(cutting->axis) > 1)
      found.emplace_back(node.get(), *cutting);
  for (const auto& [node, cutting] : found) {
    AGLOW_OK(Cutter(*node, cutting, evaluator).run(bytes));
    if (cutting.transpose != nullptr && cutting.transpose->uses().empty()) function.erase(cutting.transpose);
    auto* weight = const_cast<Constant*>(cutting.weight);
    if (weight->uses().empty()) function.module().eraseStorage(weight);
  }
  return !found.empty();
}

}  // namespace aglow
