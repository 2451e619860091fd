#include "quant/watch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/op_views.h"
#include "ops/observed.h"
#include "quant/islands.h"

namespace aglow::quant {

namespace {

// Where a value has its channels: on axis 1 for convolutions and windows, on the last one for products.
int channelAxisOf(Value value) {
  const auto says = [&](const Node& node) {
    return node.op() == Op::Conv || node.op() == Op::MaxPool || node.op() == Op::AvgPool;
  };
  const std::vector<Use>& uses = value.node->uses();
  const bool windows = says(*value.node) || std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
                         return use.slot == 0 && says(*use.user);
                       });
  const int rank = value.rank();
  return rank >= 2 && (windows || rank >= 4) ? 1 : rank - 1;
}

std::vector<Watched> watchedIn(const Function& function) {
  std::vector<Watched> watched;
  for (const Value value : possibleIslands(function).values)
    watched.push_back({.name = nameOf(value), .value = value, .channelAxis = channelAxisOf(value)});
  return watched;
}

// What is known of channels before the first run.
Tensor nothingOf(int64_t channels) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> rows(static_cast<size_t>(kObservedRows * channels), 0);
  std::fill_n(rows.begin() + kSmallest * channels, channels, kNone);
  std::fill_n(rows.begin() + kLargest * channels, channels, -kNone);
  return Tensor::of(Type(ElemKind::Float64, {kObservedRows, channels}), rows);
}

}  // namespace

std::vector<Watched> watchValues(Function& function) {
  std::vector<Watched> watched = watchedIn(function);
  Builder b(function);
  for (Watched& one : watched) {
    one.output = function.module().addPlaceholder("profile of " + one.name, one.value.type());
    b.save(one.value, one.output);
  }
  return watched;
}

Watched observeValue(Builder& b, Watched one) {
  const int64_t channels = one.channelAxis < 0 ? 1 : one.value.dim(one.channelAxis);
  one.counts = b.state("counts of " + one.name, Tensor(Type(ElemKind::Int64, {Bins::kRule.counts()})));
  one.channels = b.state("channels of " + one.name, nothingOf(channels));
  const ObserveAttrs attrs{.axis = one.channelAxis, .stepBits = Bins::kStepBits};
  Node* seen = b.named(one.value.node->name()).observe(one.counts->result(), one.channels->result(), one.value, attrs);
  b.save(seen->result(0), one.counts);
  b.save(seen->result(1), one.channels);
  return one;
}

std::vector<Watched> observeValues(Function& function) {
  std::vector<Watched> watched = watchedIn(function);
  Builder b(function);
  for (Watched& one : watched) one = observeValue(b, std::move(one));
  return watched;
}

Observed observed(const Tensor& counts, const Tensor& channels, int64_t runs) {
  Observed made;
  const std::span numbers(counts.ref().as<const int64_t>(), static_cast<size_t>(counts.type().elements()));
  made.value.counts.assign(numbers.begin(), numbers.end() - 1);
  made.value.notFinite = numbers.back();
  made.value.elements = std::accumulate(numbers.begin(), numbers.end() - 1, int64_t{0});
  if (made.value.elements + made.value.notFinite == 0) return made;
  const int64_t count = channels.type().dim(1);
  const auto row = [&](ObservedRow which) {
    return std::span(channels.ref().as<const double>() + which * count, static_cast<size_t>(count));
  };
  // The sum makes zeros of one sign; a channel without numbers is one of zeros.
  const auto end = [](double x) { return std::isfinite(x) ? static_cast<float>(x) + 0.0f : 0.0f; };
  for (const double low : row(kSmallest)) {
    made.value.min = std::min(made.value.min, static_cast<float>(low) + 0.0f);
    made.channels.min.push_back(end(low));
  }
  for (const double high : row(kLargest)) {
    made.value.max = std::max(made.value.max, static_cast<float>(high) + 0.0f);
    made.channels.max.push_back(end(high));
  }
  made.channels.samples = runs;
  made.channels.mean.assign(row(kMean).begin(), row(kMean).end());
  made.channels.square.assign(row(kSquare).begin(), row(kSquare).end());
  return made;
}

}  // namespace aglow::quant
