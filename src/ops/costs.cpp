#include "ops/costs.h"

#include <algorithm>
#include <numeric>

#include "ops/attrs.h"

namespace aglow::cost {

namespace {

double product(const Shape& shape, int from, int to) {
  return std::accumulate(shape.dims().begin() + from, shape.dims().begin() + to, 1.0,
                         [](double a, int64_t b) { return a * static_cast<double>(b); });
}

// The last block of channels may be filled up; what fills it is not counted.
double shareOfChannels(const CostContext& use) {
  const Shape& out = use.out.shape();
  const double blocked = product(out, 1, 2) * (out.rank() == 5 ? product(out, 4, 5) : 1);
  return blocked > 0 ? static_cast<double>(use.attrs.integer("outputs")) / blocked : 0;
}

}  // namespace

double nothing(const CostContext&) { return 0; }
double once(const CostContext&) { return 1; }
double twice(const CostContext&) { return 2; }

double matMul(const CostContext& use) {
  const Shape& a = use.type(0).shape();
  return a.rank() == 0 ? 0 : 2 * static_cast<double>(a[a.rank() - 1]);
}

double conv(const CostContext& use) {
  const Shape& filter = use.type(1).shape();
  return 2 * product(filter, 1, filter.rank()) + (use.has(2) ? 1 : 0);
}

double blockedConv(const CostContext& use) { return 2 * product(use.type(1).shape(), 1, 4) * shareOfChannels(use); }
double narrowConv(const CostContext& use) {
  const auto together = static_cast<double>(use.type(1).dim(5));
  return 2 * product(use.type(1).shape(), 1, 4) * together * shareOfChannels(use);
}
// As a direct convolution would need, so that both can be compared.
double winogradConv(const CostContext& use) {
  return 2 * 9 * product(use.type(1).shape(), 2, 3) * shareOfChannels(use);
}
double depthwiseConv(const CostContext& use) { return 2 * product(use.type(1).shape(), 1, 4); }
double byteDepthwiseConv(const CostContext& use) { return 2 * product(use.type(1).shape(), 1, 3); }

double transposedMatMul(const CostContext& use) {
  const Shape& a = use.type(0).shape();
  return a.rank() < 2 ? 0 : 2 * static_cast<double>(a[a.rank() - 2]);
}
double tapProducts(const CostContext& use) {
  const Shape& g = use.type(1).shape();
  return 2 * product(g, 0, 1) * product(g, 2, 4);
}

// A score and a share of a value for each key.
double attention(const CostContext& use) {
  const Shape &k = use.type(1).shape(), &v = use.type(2).shape();
  const double width = static_cast<double>(std::max<int64_t>(v[3], 1));
  return 2 * static_cast<double>(k[2]) * (static_cast<double>(k[3]) / width + 1);
}

// One vector of the inputs and one of the state for each gate of each of y's elements.
double recurrent(const CostContext& use) {
  const Shape &w = use.type(1).shape(), &r = use.type(2).shape();
  const double gates = r[2] == 0 ? 0 : static_cast<double>(r[1]) / static_cast<double>(r[2]);
  return 2 * gates * static_cast<double>(w[2] + r[2]);
}

double pool(const CostContext& use) {
  const auto& kernel = use.attrs.ints("kernel");
  return std::accumulate(kernel.begin(), kernel.end(), 1.0,
                         [](double a, int64_t b) { return a * static_cast<double>(b); });
}

// A bin, a count, two ends and two sums for each element.
double observe(const CostContext& use) {
  constexpr double kEach = 8;
  return kEach * static_cast<double>(use.type(2).elements()) / static_cast<double>(use.out.elements());
}

double everyInput(const CostContext& use) {
  const auto results = static_cast<double>(std::max<int64_t>(use.out.elements(), 1));
  return static_cast<double>(use.type(0).elements()) / results;
}

}  // namespace aglow::cost
