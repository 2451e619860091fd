#include "grad/batch_norms.h"

#include <algorithm>

#include "graph/batch_norm.h"
#include "graph/op_views.h"

namespace aglow {

namespace {

class BatchNorms {
public:
  BatchNorms(Function& function, double momentum) : function_(function), b_(function), momentum_(momentum) {}

  void run() {
    for (Node* node = function_.front(); node != nullptr;) {
      Node* const next = function_.next(node);
      if (node->op() == Op::BatchNorm) train(*node);
      node = next;
    }
    b_.before(nullptr);
    for (const auto& [storage, value] : running_) b_.save(value, storage);
  }

private:
  void train(Node& node) {
    const BatchNormNode v(node);
    b_.before(&node).named(node.name());
    const TrainedBatchNorm trained = trainedBatchNorm(b_, v.x(), v.scale(), v.bias(), v.epsilon());
    // Of a few elements the running variance allows for the one that the mean takes, as others have it.
    const double elements = static_cast<double>(v.x().type().elements()) / static_cast<double>(v.x().dim(1));
    const Value unbiased = elements > 1
                               ? b_.mul(trained.variance, b_.scalarLike(trained.variance, elements / (elements - 1)))
                               : trained.variance;
    move(v.mean(), trained.mean);
    move(v.variance(), unbiased);
    replaceAllUses(node.result(), trained.y);
    function_.erase(&node);
  }

  // One that several batch norms share moves with each of them.
  void move(Value statistic, Value now) {
    if (!statistic.node->isStorage() || initialBytes(*statistic.node) == nullptr) return;
    Module& module = function_.module();
    Placeholder* state = statistic.node->op() == Op::Constant ? module.thaw(static_cast<Constant*>(statistic.node))
                                                              : static_cast<Placeholder*>(statistic.node);
    const auto known = std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.first == state; });
    const Value old = known == running_.end() ? state->result() : known->second;
    const Value moved = runningStatistic(b_, old, now, momentum_);
    if (known == running_.end())
      running_.emplace_back(state, moved);
    else
      known->second = moved;
  }

  Function& function_;
  Builder b_;
  double momentum_;
  std::vector<std::pair<Placeholder*, Value>> running_;
};

}  // namespace

void trainBatchNorms(Function& function, double momentum) { BatchNorms(function, momentum).run(); }

}  // namespace aglow
