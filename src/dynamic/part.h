// A part of a model: what was compiled for the types and values it met, and what is to be run after it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "import/onnx/parts.h"
#include "runtime/network.h"

namespace aglow {

// Nodes of a graph that are still to be run, and whose values shapes among them depend on.
struct PendingNodes;

// What the parts of a session hold in memory now.
struct PartBytes {
  std::atomic<int64_t> weights = 0;  // which all sizes share: those of the largest part so far
  std::atomic<int64_t> runs = 0;     // each part has its own
};
// A part's share of it, for as long as the part lives.
class CountedBytes {
public:
  CountedBytes(std::shared_ptr<PartBytes> all, int64_t weights, int64_t runs) : all_(std::move(all)), runs_(runs) {
    all_->runs += runs_;
    int64_t most = all_->weights;
    while (most < weights && !all_->weights.compare_exchange_weak(most, weights)) continue;
  }
  ~CountedBytes() { all_->runs -= runs_; }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;

private:
  std::shared_ptr<PartBytes> all_;
  int64_t runs_;
};

struct Part {
  std::unique_ptr<CountedBytes> counted;
  std::unique_ptr<Network> network;  // none where there is nothing to compute
  onnx::KnownValues constants;       // values that need no run
  onnx::KnownValues held;            // constants that the code depends on: kept alive, because keys hold addresses
  std::vector<size_t> alone;         // nodes to be run after it, each by itself
  PendingNodes* next = nullptr;      // none: the graph is done
  std::vector<std::string> freeze;   // nothing was made: the values of these decide
};

}  // namespace aglow
