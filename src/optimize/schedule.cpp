// Orders of nodes, compared by simulation. No strategy is best for all graphs; each is cheap.
#include "optimize/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "support/sizes.h"
#include "tensor/tensor.h"

namespace aglow {

namespace {

using Order = std::vector<int32_t>;  // numbers of nodes

// A function as plain numbers. Buffers are what irgen would allocate; views share the one of their operand.
struct Graph {
  struct Step {
    std::vector<int32_t> before;  // steps that must come earlier, each once
    std::vector<int32_t> after;
    std::vector<int32_t> makes;  // buffers
    std::vector<int32_t> uses;   // buffers, each once
    bool inPlace = false;
  };
  struct Buffer {
    double bytes = 0;  // sums of hostile sizes stay finite
    int32_t maker = 0;
    std::vector<int32_t> users;
  };

  std::vector<const Node*> nodes;
  std::vector<Step> steps;
  std::vector<Buffer> buffers;

  explicit Graph(const Function& function);
  double bytes(int32_t buffer) const { return buffers[static_cast<size_t>(buffer)].bytes; }
  const Step& step(int32_t i) const { return steps[static_cast<size_t>(i)]; }
  double madeBytes(const Step& s) const {
    return std::accumulate(s.makes.begin(), s.makes.end(), 0.0, [&](double sum, int32_t b) { return sum + bytes(b); });
  }

private:
  void connect(int32_t from, int32_t to) { steps[static_cast<size_t>(to)].before.push_back(from); }
};

void makeUnique(std::vector<int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// Keeps reads and writes of the placeholders that a function writes in their order.
class Hazards {
public:
  explicit Hazards(const Function& function) {
    for (const Node* save : function.saves()) touched_.try_emplace(save->input(1).node);
  }
  bool written(const Node* storage) const { return touched_.contains(storage); }

  template <class Connect>
  void read(const Node* storage, int32_t step, Connect&& connect) {
    const auto it = touched_.find(storage);
    if (it == touched_.end()) return;
    if (it->second.write >= 0) connect(it->second.write, step);
    it->second.reads.push_back(step);
  }
  template <class Connect>
  void write(const Node* storage, int32_t step, Connect&& connect) {
    Touched& t = touched_.at(storage);
    if (t.write >= 0) connect(t.write, step);
    for (const int32_t reader : t.reads)
      if (reader != step) connect(reader, step);
    t = {step, {}};
  }

private:
  struct Touched {
    int32_t write = -1;
    std::vector<int32_t> reads;  // since then
  };
  std::unordered_map<const Node*, Touched> touched_;
};

Graph::Graph(const Function& function) {
  Hazards hazards(function);
  std::unordered_map<const Node*, int32_t> numbers;
  std::unordered_map<const Node*, std::vector<int32_t>> results;  // the buffer of each result; -1: of storage
  const auto order = [&](int32_t from, int32_t to) { connect(from, to); };
  steps.resize(function.size());
  for (const auto& owned : function.nodes()) {
    const Node& node = *owned;
    const auto number = static_cast<int32_t>(nodes.size());
    nodes.push_back(&node);
    numbers.emplace(&node, number);
    Step& s = steps[static_cast<size_t>(number)];
    s.inPlace = node.def().inPlace;
    const bool save = node.op() == Op::Save;
    for (int i = Use::kPredicate; i < node.inputCount() - (save ? 1 : 0); ++i) {
      const Value v = i == Use::kPredicate ? node.predicate() : node.input(i);
      if (!v) continue;
      if (v.node->isStorage()) {
        hazards.read(v.node, number, order);
        continue;
      }
      connect(numbers.at(v.node), number);
      const int32_t buffer = results.at(v.node)[static_cast<size_t>(v.index)];
      if (buffer < 0) continue;
      s.uses.push_back(buffer);
      // What is saved is computed in its placeholder.
      if (save) buffers[static_cast<size_t>(buffer)].bytes = 0;
    }
    if (save) hazards.write(node.input(1).node, number, order);
    std::vector<int32_t>& own = results[&node];
    if (node.def().kind == OpKind::View && !hazards.written(node.input(0).node)) {
      const Value v = node.input(0);
      own.push_back(v.node->isStorage() ? -1 : results.at(v.node)[static_cast<size_t>(v.index)]);
      continue;
    }
    for (const Type& type : node.types()) {
      own.push_back(static_cast<int32_t>(buffers.size()));
      s.makes.push_back(own.back());
      buffers.push_back({static_cast<double>(alignUp(type.bytes(), Tensor::kAlignment)), number, {}});
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    makeUnique(steps[i].before);
    makeUnique(steps[i].uses);
    for (const int32_t before : steps[i].before)
      steps[static_cast<size_t>(before)].after.push_back(static_cast<int32_t>(i));
    for (const int32_t buffer : steps[i].uses)
      buffers[static_cast<size_t>(buffer)].users.push_back(static_cast<int32_t>(i));
  }
}

// What is alive while steps run one after the other.
class Simulation {
public:
  explicit Simulation(const Graph& graph) : graph_(graph) {
    for (const Graph::Buffer& b : graph.buffers) left_.push_back(static_cast<int32_t>(b.users.size()));
  }

  int64_t run(const Order& order) {
    double live = 0, peak = 0;
    for (const int32_t number : order) {
      const Graph::Step& s = graph_.step(number);
      double made = 0, freed = 0, shared = 0;
      for (const int32_t b : s.uses) {
        if (--left_[static_cast<size_t>(b)] > 0) continue;
        freed += graph_.bytes(b);
        if (s.inPlace && graph_.bytes(b) == graph_.bytes(s.makes[0])) shared = graph_.bytes(b);
      }
      for (const int32_t b : s.makes) {
        made += graph_.bytes(b);
        if (left_[static_cast<size_t>(b)] == 0) freed += graph_.bytes(b);
      }
      peak = std::max(peak, live + made - shared);
      live += made - freed;
    }
    return static_cast<int64_t>(std::min(peak, 0x1p62));
  }

private:
  const Graph& graph_;
  std::vector<int32_t> left_;  // uses of each buffer
};

// Operands first, those that need most beyond what they leave before the others, as Sethi and Ullman order the
// operands of an expression. A graph is treated like the tree it unfolds to.
class DepthFirst {
public:
  explicit DepthFirst(const Graph& graph) : graph_(graph), need_(graph.steps.size()), done_(graph.steps.size()) {
    // A step's number is larger than those before it, so that needs are known when they are asked for.
    for (size_t i = 0; i < graph.steps.size(); ++i) {
      const Graph::Step& s = graph.steps[i];
      double kept = 0, need = 0;
      for (const int32_t before : sorted(s)) {
        need = std::max(need, kept + need_[static_cast<size_t>(before)]);
        kept += left(before);
      }
      need_[i] = std::max(need, kept + graph.madeBytes(s));
    }
  }

  // What comes first of the steps that nothing follows. Nearest: that with the fewest steps on the longest way to it,
  // so that a gradient becomes an update as soon as it is there, the last layer's first.
  enum class Ends : uint8_t { Given, Hungriest, Nearest };
  Order run(Ends first) {
    Order ends;
    for (size_t i = 0; i < graph_.steps.size(); ++i)
      if (graph_.steps[i].after.empty()) ends.push_back(static_cast<int32_t>(i));
    if (first == Ends::Hungriest) sort(ends);
    if (first == Ends::Nearest) {
      std::vector<int32_t> way(graph_.steps.size());
      for (size_t i = 0; i < graph_.steps.size(); ++i)
        for (const int32_t before : graph_.steps[i].before)
          way[i] = std::max(way[i], way[static_cast<size_t>(before)] + 1);
      std::stable_sort(ends.begin(), ends.end(),
                       [&](int32_t a, int32_t b) { return way[static_cast<size_t>(a)] < way[static_cast<size_t>(b)]; });
    }
    for (const int32_t end : ends) visit(end);
    return std::move(order_);
  }

private:
  double left(int32_t step) const { return graph_.madeBytes(graph_.step(step)); }
  void sort(Order& steps) const {
    std::sort(steps.begin(), steps.end(), [&](int32_t a, int32_t b) {
      const double x = need_[static_cast<size_t>(a)] - left(a), y = need_[static_cast<size_t>(b)] - left(b);
      return x != y ? x > y : a < b;
    });
  }
  Order sorted(const Graph::Step& s) const {
    Order before = s.before;
    sort(before);
    return before;
  }

  // With a stack of its own: a chain may be as long as the function.
  void visit(int32_t end) {
    struct Frame {
      int32_t step;
      Order before;
      size_t next = 0;
    };
    std::vector<Frame> stack;
    const auto push = [&](int32_t step) {
      if (done_[static_cast<size_t>(step)]) return;
      done_[static_cast<size_t>(step)] = true;
      stack.push_back({step, sorted(graph_.step(step))});
    };
    push(end);
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next < top.before.size()) {
        push(top.before[top.next++]);
        continue;
      }
      order_.push_back(top.step);
      stack.pop_back();
    }
  }

  const Graph& graph_;
  std::vector<double> need_;  // bytes to compute a step with all that comes before it
  std::vector<bool> done_;
  Order order_;
};

// Of the steps that could be next, always the one that lets the live bytes grow least. State knows how much that is,
// and which other steps grow less once one is taken; entries of the queue that are out of date are simply too late.
template <class State>
Order listSchedule(const Graph& graph, State state) {
  using Entry = std::pair<double, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<size_t> waiting;
  for (const Graph::Step& s : graph.steps) waiting.push_back(State::first(s).size());
  const auto push = [&](int32_t step) {
    if (waiting[static_cast<size_t>(step)] == 0) ready.emplace(state.growth(step), step);
  };
  for (size_t i = 0; i < waiting.size(); ++i) push(static_cast<int32_t>(i));
  Order order;
  std::vector<bool> done(graph.steps.size());
  while (!ready.empty()) {
    const int32_t step = ready.top().second;
    ready.pop();
    if (done[static_cast<size_t>(step)]) continue;
    done[static_cast<size_t>(step)] = true;
    order.push_back(step);
    state.take(step, push);
    for (const int32_t next : State::then(graph.step(step))) {
      --waiting[static_cast<size_t>(next)];
      push(next);
    }
  }
  return order;
}

// Forwards, a step's results come alive and the operands die that nobody else waits for.
class Forwards {
public:
  explicit Forwards(const Graph& graph) : graph_(graph) {
    for (const Graph::Buffer& b : graph.buffers) left_.push_back(b.users.size());
  }
  static const Order& first(const Graph::Step& s) { return s.before; }
  static const Order& then(const Graph::Step& s) { return s.after; }

  double growth(int32_t step) const {
    double bytes = graph_.madeBytes(graph_.step(step));
    for (const int32_t b : graph_.step(step).uses)
      if (left_[static_cast<size_t>(b)] == 1) bytes -= graph_.bytes(b);
    return bytes;
  }
  template <class Push>
  void take(int32_t step, Push&& push) {
    for (const int32_t b : graph_.step(step).uses)
      if (--left_[static_cast<size_t>(b)] == 1)
        for (const int32_t user : graph_.buffers[static_cast<size_t>(b)].users) push(user);
  }

private:
  const Graph& graph_;
  std::vector<size_t> left_;  // uses of each buffer
};

// Backwards, a step's operands come alive, if no later step has needed them already, and its results die.
class Backwards {
public:
  explicit Backwards(const Graph& graph) : graph_(graph), live_(graph.buffers.size()) {}
  static const Order& first(const Graph::Step& s) { return s.after; }
  static const Order& then(const Graph::Step& s) { return s.before; }

  double growth(int32_t step) const {
    double bytes = -graph_.madeBytes(graph_.step(step));
    for (const int32_t b : graph_.step(step).uses)
      if (!live_[static_cast<size_t>(b)]) bytes += graph_.bytes(b);
    return bytes;
  }
  template <class Push>
  void take(int32_t step, Push&& push) {
    for (const int32_t b : graph_.step(step).uses) {
      if (live_[static_cast<size_t>(b)]) continue;
      live_[static_cast<size_t>(b)] = true;
      for (const int32_t user : graph_.buffers[static_cast<size_t>(b)].users) push(user);
    }
  }

private:
  const Graph& graph_;
  std::vector<bool> live_;
};

Order greedyForwards(const Graph& graph) { return listSchedule(graph, Forwards(graph)); }

Order greedyBackwards(const Graph& graph) {
  Order order = listSchedule(graph, Backwards(graph));
  std::reverse(order.begin(), order.end());
  return order;
}

Order given(const Graph& graph) {
  Order order(graph.steps.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The function's own order comes first and is left only for a better one.
struct Row {
  std::string_view name;
  Order (*run)(const Graph& graph);
};
constexpr Row kStrategies[] = {
    {"given", given},
    {"depth first", [](const Graph& graph) { return DepthFirst(graph).run(DepthFirst::Ends::Given); }},
    {"depth first, hungriest output first",
     [](const Graph& graph) { return DepthFirst(graph).run(DepthFirst::Ends::Hungriest); }},
    {"depth first, nearest output first",
     [](const Graph& graph) { return DepthFirst(graph).run(DepthFirst::Ends::Nearest); }},
    {"greedy", greedyForwards},
    {"greedy backwards", greedyBackwards},
};

}  // namespace

Schedule scheduleNodes(const Function& function) {
  const Graph graph(function);
  Schedule best;
  for (const Row& row : kStrategies) {
    const Order order = row.run(graph);
    AGLOW_CHECK(order.size() == graph.steps.size(), fmt::format("the order '{}' lacks nodes", row.name));
    const int64_t peak = Simulation(graph).run(order);
    if (best.strategy.empty()) best.givenPeak = peak;
    if (!best.strategy.empty() && peak >= best.peak) continue;
    best.peak = peak;
    best.strategy = row.name;
    best.order.clear();
    for (const int32_t number : order) best.order.push_back(graph.nodes[static_cast<size_t>(number)]);
  }
  return best;
}

int64_t peakBytes(const Function& function, std::span<const Node* const> order) {
  const Graph graph(function);
  std::unordered_map<const Node*, int32_t> numbers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) numbers.emplace(graph.nodes[i], static_cast<int32_t>(i));
  Order steps;
  for (const Node* node : order) steps.push_back(numbers.at(node));
  return Simulation(graph).run(steps);
}

}  // namespace aglow
