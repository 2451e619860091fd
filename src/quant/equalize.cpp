#include "quant/equalize.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/builder.h"
#include "quant/noise.h"
#include "quant/product.h"

namespace aglow::quant {

namespace {

// ---------------------------------------------------------------- which values have their channels in common

bool isProduct(const Node& node) { return roleOf(node) == Role::Product; }

// Operators that compute each channel for itself, so that a positive factor passes through them. A convolution keeps
// channels on axis 1, a product on the last one; these keep them where they are.
bool passesFactors(const Node& node) {
  switch (node.op()) {
    case Op::Relu:
      return true;
    case Op::MaxPool:
    case Op::AvgPool:
    case Op::Pad:
    case Op::Resize:
      return roleOf(node) != Role::Float && node.type().rank() == node.input(0).rank();
    case Op::Add:
      return roleOf(node) == Role::Compute && node.input(0).type() == node.type() &&
             node.input(1).type() == node.type();
    default:
      return false;
  }
}

// The bias that a node adds to what a product gave, or nothing.
bool addsBias(const Node& node) {
  if (node.op() != Op::Add) return false;
  const int constant = isConstant(node.input(1)) ? 1 : 0;
  Node* maker = node.input(1 - constant).node;
  return maker != nullptr && !maker->isStorage() && maker->op() == Op::MatMul && biasOf(*maker).node == &node;
}

// All values whose channels take one factor each, and who gives and takes them.
struct Space {
  std::vector<Node*> makers, takers;
  std::vector<Value> values;
  bool fixed = false;  // something else looks at the values
};

class Spaces {
public:
  explicit Spaces(const Function& function) {
    for (const auto& place : function.module().storage())
      if (place->op() == Op::Placeholder) of(place->result()).fixed = true;
    for (const auto& node : function.nodes()) add(*node);
  }

  std::vector<Space> take() {
    std::vector<Space> taken;
    for (size_t i = 0; i < spaces_.size(); ++i)
      if (parent_[i] == i) taken.push_back(std::move(spaces_[i]));
    return taken;
  }

private:
  void add(Node& node) {
    const bool product = isProduct(node), bias = addsBias(node), passes = bias || passesFactors(node);
    const std::vector<Value> inputs = node.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || isConstant(inputs[i])) continue;
      if (product && i == 0)
        of(inputs[i]).takers.push_back(&node);
      else if (!passes)
        of(inputs[i]).fixed = true;
    }
    if (node.predicate()) of(node.predicate()).fixed = true;
    for (int i = 0; i < node.resultCount(); ++i) {
      Space& space = of(node.result(i));
      if (product) space.makers.push_back(&node);
      if (!product && !passes) space.fixed = true;
      if (node.predicate()) space.fixed = true;
    }
    if (passes)
      for (const Value input : inputs)
        if (input && !isConstant(input)) join(input, node.result());
  }

  Space& of(Value value) {
    const auto [it, isNew] = number_.try_emplace(value, spaces_.size());
    if (isNew) {
      parent_.push_back(spaces_.size());
      spaces_.push_back({.values = {value}});
    }
    return spaces_[root(it->second)];
  }
  size_t root(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(Value a, Value b) {
    of(a);
    of(b);
    const size_t one = root(number_.at(a)), other = root(number_.at(b));
    if (one == other) return;
    Space& into = spaces_[one];
    Space& from = spaces_[other];
    into.makers.insert(into.makers.end(), from.makers.begin(), from.makers.end());
    into.takers.insert(into.takers.end(), from.takers.begin(), from.takers.end());
    into.values.insert(into.values.end(), from.values.begin(), from.values.end());
    into.fixed = into.fixed || from.fixed;
    parent_[other] = one;
  }

  std::unordered_map<Value, size_t, ValueHash> number_;
  std::vector<size_t> parent_;
  std::vector<Space> spaces_;
};

// ---------------------------------------------------------------- which factors

int64_t channelsMade(const Node& product) { return WeightView(product).outputs; }

// A space with what the profile says of the inputs of its takers.
struct Candidate {
  // A product in integers; its noise without factors, so that products count alike, however large their results are.
  struct Taker {
    Sizes weights;
    const ChannelProfile* input;
    double noise;
  };
  const Space* space;
  std::vector<Taker> takers;
  size_t channels = 0;

  double noise(const std::vector<double>& factors) const {
    double sum = 0;
    for (const Taker& taker : takers)
      if (taker.noise > 0) sum += noiseOf(taker.weights, *taker.input, factors) / taker.noise;
    return sum;
  }
};

std::optional<Candidate> candidateOf(const Space& space, const Islands& islands, const Profile& profile) {
  if (space.fixed || space.takers.empty()) return std::nullopt;
  Candidate candidate{.space = &space};
  candidate.channels = static_cast<size_t>(WeightView(*space.takers.front()).channels());
  const auto fits = [&](const ChannelProfile& channels) {
    return channels.size() == candidate.channels && channels.samples > 0;
  };
  const bool conv = space.takers.front()->op() == Op::Conv;
  for (const Node* maker : space.makers)
    if (static_cast<size_t>(channelsMade(*maker)) != candidate.channels || (maker->op() == Op::Conv) != conv)
      return std::nullopt;
  for (const Value value : space.values) {
    const int axis = conv ? 1 : value.rank() - 1;
    if (value.rank() < 2 || static_cast<size_t>(value.dim(axis)) != candidate.channels) return std::nullopt;
    if (const auto known = profile.channels.find(nameOf(value));
        known != profile.channels.end() && !fits(known->second))
      return std::nullopt;
  }
  for (Node* taker : space.takers) {
    if ((taker->op() == Op::Conv) != conv) return std::nullopt;
    const auto known = profile.channels.find(nameOf(taker->input(0)));
    if (std::find(islands.products.begin(), islands.products.end(), taker) == islands.products.end()) continue;
    Sizes weights{WeightView(*taker)};
    if (known == profile.channels.end() || weights.channels() != candidate.channels) return std::nullopt;
    const double noise = noiseOf(weights, known->second, std::vector<double>(candidate.channels, 1));
    candidate.takers.push_back({std::move(weights), &known->second, noise});
  }
  if (candidate.takers.empty()) return std::nullopt;
  return candidate;
}

// The largest share of an output's weights that each channel has: what a factor would make larger.
std::vector<double> weightShares(const Candidate& candidate) {
  std::vector<double> shares(candidate.channels);
  for (const Candidate::Taker& taker : candidate.takers)
    for (int64_t o = 0; o < taker.weights.outputs; ++o) {
      const auto row = taker.weights.largest.begin() + o * taker.weights.inputs;
      const float most = *std::max_element(row, row + taker.weights.inputs);
      for (int64_t c = 0; c < taker.weights.inputs && most > 0; ++c) {
        double& share = shares[taker.weights.first(o) + static_cast<size_t>(c)];
        share = std::max(share, static_cast<double>(row[c] / most));
      }
    }
  return shares;
}

// The best of some: extents to a power, over shares to another. Nothing where none is clearly better than what is.
std::vector<double> factorsFor(const Candidate& candidate) {
  constexpr double kLeast = 1e-3;  // of the largest: channels that are never seen keep a size that is safe
  constexpr double kWorth = 0.5;   // what is predicted is not exact: halves of the noise are worth a change
  std::vector<double> extents(candidate.channels), shares = weightShares(candidate);
  for (const Candidate::Taker& taker : candidate.takers) {
    double most = 0;
    for (size_t c = 0; c < candidate.channels; ++c) most = std::max(most, taker.input->extent(c));
    for (size_t c = 0; c < candidate.channels && most > 0; ++c)
      extents[c] = std::max(extents[c], taker.input->extent(c) / most);
  }
  for (double& extent : extents) extent = std::max(extent, kLeast);
  for (double& share : shares) share = std::max(share, kLeast);
  std::vector<double> best;
  double least = candidate.noise(std::vector<double>(candidate.channels, 1)) * kWorth;
  for (const double ofExtent : {0.25, 0.5, 0.75, 1.0})
    for (const double ofShare : {0.0, 0.25, 0.5}) {
      std::vector<double> factors(candidate.channels);
      for (size_t c = 0; c < factors.size(); ++c)
        factors[c] = std::pow(extents[c], ofExtent) / std::pow(shares[c], ofShare);
      const double noise = candidate.noise(factors);
      if (!(noise < least)) continue;
      least = noise;
      best = std::move(factors);
    }
  return best;
}

// ---------------------------------------------------------------- the change

void setConstant(Builder& b, Node& node, int operand, Tensor tensor) {
  const std::string name = node.input(operand).node->name();
  node.setInput(operand, b.constant(std::move(tensor), name));
}

// Divides what is known of a value's channels by their factors.
void divide(ChannelProfile& channels, ValueProfile& seen, const std::vector<double>& factors) {
  Range range;
  for (size_t c = 0; c < factors.size(); ++c) {
    channels.min[c] = static_cast<float>(static_cast<double>(channels.min[c]) / factors[c]);
    channels.max[c] = static_cast<float>(static_cast<double>(channels.max[c]) / factors[c]);
    channels.mean[c] /= factors[c];
    channels.square[c] /= factors[c] * factors[c];
    range.low = std::min<double>(c == 0 ? channels.min[c] : range.low, channels.min[c]);
    range.high = std::max<double>(c == 0 ? channels.max[c] : range.high, channels.max[c]);
  }
  seen = seen.stretchedTo(static_cast<float>(range.low), static_cast<float>(range.high));
}

void multiplyWeights(Builder& b, Node& taker, const std::vector<double>& factors) {
  const WeightView weights(taker);
  setConstant(b, taker, 1, weights.times([&](int64_t o, int64_t c) { return factors[weights.channelOf(o, c)]; }));
}

void apply(Builder& b, const Candidate& candidate, const std::vector<double>& factors, Profile& profile) {
  for (Node* maker : candidate.space->makers) {
    setConstant(b, *maker, 1,
                WeightView(*maker).times([&](int64_t o, int64_t) { return 1 / factors[static_cast<size_t>(o)]; }));
    const Bias bias = biasOf(*maker);
    if (bias.node == nullptr) continue;
    const Tensor& old = asConstant(bias.node->input(bias.operand))->tensor();
    std::vector<double> values = old.doubles();
    for (size_t c = 0; c < values.size(); ++c) values[c] /= factors[c];
    setConstant(b, *bias.node, bias.operand, Tensor::of(old.type(), values));
  }
  for (Node* taker : candidate.space->takers) multiplyWeights(b, *taker, factors);
  for (const Value value : candidate.space->values) {
    const auto known = profile.channels.find(nameOf(value));
    const auto seen = profile.values.find(nameOf(value));
    if (known == profile.channels.end() || seen == profile.values.end()) continue;
    divide(known->second, seen->second, factors);
  }
}

// A bias that is not a constant, or that others take too, cannot be divided.
bool canBeDivided(const Space& space) {
  return std::all_of(space.makers.begin(), space.makers.end(), [](Node* maker) {
    return maker->op() != Op::Conv || !maker->input(2) || isConstant(maker->input(2));
  });
}

// ---------------------------------------------------------------- values that floats make

// A value that is computed in floats, or given, and taken as integers by products alone: no product before it can
// divide its channels, so that a multiplication does, in the loop that rounds it.
std::optional<Space> spaceOfFloats(Value value, const Islands& islands) {
  const Role role = value.node->isStorage() ? Role::Float : roleOf(*value.node);
  if (role != Role::Float && role != Role::Table) return std::nullopt;
  const size_t group = islands.group.at(value);
  const auto shares = [&](Value other) { return other != value && islands.group.at(other) == group; };
  if (std::any_of(islands.values.begin(), islands.values.end(), shares)) return std::nullopt;
  Space space{.values = {value}};
  for (const Use& use : value.node->uses()) {
    if (!islands.members.contains(use.user) || use.slot == Use::kPredicate || use.user->input(use.slot) != value)
      continue;
    if (use.slot != 0 || !isProduct(*use.user)) return std::nullopt;
    space.takers.push_back(use.user);
  }
  return space;
}

void divideBefore(Builder& b, const Candidate& candidate, const std::vector<double>& factors, Islands& islands,
                  Profile& profile) {
  const Value value = candidate.space->values.front();
  Function& function = b.function();
  const bool conv = candidate.space->takers.front()->op() == Op::Conv;
  std::vector<int64_t> along(conv ? static_cast<size_t>(value.rank()) - 1 : 1, 1);
  along.front() = std::ssize(factors);
  std::vector<double> inverse;
  for (const double factor : factors) inverse.push_back(1 / factor);
  b.before(value.node->isStorage() ? function.front() : function.next(value.node)).named(value.node->name());
  const Value divided = b.mul(value, b.constant(Tensor::of(Type(ElemKind::Float32, Shape(along)), inverse)));
  for (Node* taker : candidate.space->takers) {
    taker->setInput(0, divided);
    multiplyWeights(b, *taker, factors);
  }
  ChannelProfile channels = profile.channels.at(nameOf(value));
  ValueProfile seen = profile.values.at(nameOf(value));
  divide(channels, seen, factors);
  profile.channels[nameOf(divided)] = std::move(channels);
  profile.values[nameOf(divided)] = std::move(seen);
  std::replace(islands.values.begin(), islands.values.end(), value, divided);
  islands.group[divided] = islands.group.at(value);
}

}  // namespace

bool equalize(Function& function, Islands& islands, Profile& profile) {
  Builder b(function);
  bool changed = false;
  for (const Space& space : Spaces(function).take()) {
    if (space.makers.empty() || !canBeDivided(space)) continue;
    const std::optional<Candidate> candidate = candidateOf(space, islands, profile);
    if (!candidate) continue;
    const std::vector<double> factors = factorsFor(*candidate);
    if (factors.empty()) continue;
    apply(b, *candidate, factors, profile);
    changed = true;
  }
  for (const Value value : std::vector<Value>(islands.values)) {
    const std::optional<Space> space = spaceOfFloats(value, islands);
    const std::optional<Candidate> candidate = space ? candidateOf(*space, islands, profile) : std::nullopt;
    const std::vector<double> factors = candidate ? factorsFor(*candidate) : std::vector<double>();
    if (factors.empty()) continue;
    divideBefore(b, *candidate, factors, islands, profile);
    changed = true;
  }
  return changed;
}

}  // namespace aglow::quant
