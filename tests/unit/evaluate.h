// Random bindings for a function, and the comparison of what two functions compute from them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compile/evaluate.h"
#include "graph/builder.h"
#include "rewrite/rule.h"
#include "support/rng.h"

namespace aglow::testing_support {

// Values between -4 and 4; with specials, some are NaN, infinite, zero of either sign, or very large or small.
inline Tensor randomTensor(Rng& rng, const Type& type, bool specials = false) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> rare{kInf, -kInf, std::nan(""), 0.0, -0.0, 1e30, -1e30, 1e-30};
  std::vector<double> values(static_cast<size_t>(type.elements()));
  for (double& value : values) {
    if (type.kind() == ElemKind::Bool)
      value = rng.flip() ? 1 : 0;
    else if (isFloat(type.kind()))
      value = specials && rng.between(0, 3) == 0 ? rng.pick(rare) : rng.real(-4, 4);
    else
      value = static_cast<double>(isUnsigned(type.kind()) ? rng.between(0, 9) : rng.between(-9, 9));
  }
  return Tensor::fromDoubles(type, values);
}

inline NamedTensors randomBindings(Rng& rng, const Function& function, bool specials = false) {
  NamedTensors bindings;
  for (const Placeholder* place : inputsOf(function))
    bindings.emplace(place->name(), randomTensor(rng, place->type(), specials));
  return bindings;
}

// The same values, NaN and infinities at the same places: every bit (but any NaN is as good as another), or up to
// rounding relative to the largest of them.
inline ::testing::AssertionResult sameValues(const Tensor& a, const Tensor& b, bool bits = false) {
  if (a.type() != b.type()) return ::testing::AssertionFailure() << a.type().text() << " against " << b.type().text();
  const std::vector<double> x = a.doubles(), y = b.doubles();
  double scale = 1;
  for (const double v : x)
    if (std::isfinite(v) && std::abs(v) < 1e6) scale = std::max(scale, std::abs(v));
  const double unit = a.type().kind() == ElemKind::Float16    ? 4e-3
                      : a.type().kind() == ElemKind::BFloat16 ? 3e-2
                      : isFloat(a.type().kind())              ? 2e-5
                                                              : 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i] && (!bits || std::signbit(x[i]) == std::signbit(y[i]))) continue;
    if (!bits && std::isfinite(x[i]) && std::isfinite(y[i]) &&
        std::abs(x[i] - y[i]) <= unit * std::max(scale, std::abs(x[i])))
      continue;
    return ::testing::AssertionFailure() << "element " << i << " of " << a.type().text() << ": " << x[i] << " against "
                                         << y[i];
  }
  return ::testing::AssertionSuccess();
}

// Whether the second function gives what the first one gives.
inline ::testing::AssertionResult sameResults(const Function& a, const Function& b, const NamedTensors& bindings,
                                              bool bits = false) {
  const auto x = evaluateFunction(a, bindings), y = evaluateFunction(b, bindings);
  // What nobody needs may go although it would fail.
  if (!x.ok()) return ::testing::AssertionSuccess();
  if (!y.ok()) return ::testing::AssertionFailure() << y.error().text();
  if (x->size() != y->size()) return ::testing::AssertionFailure() << "another number of outputs";
  for (size_t i = 0; i < x->size(); ++i)
    if (auto same = sameValues((*x)[i], (*y)[i], bits); !same) return same << " of output " << i;
  return ::testing::AssertionSuccess();
}

inline int countOf(const Function& function, Op op) {
  return static_cast<int>(
      std::count_if(function.nodes().begin(), function.nodes().end(), [&](const auto& n) { return n->op() == op; }));
}

// All operators of a function in order, but for Save.
inline std::vector<std::string> opsOf(const Function& function) {
  std::vector<std::string> names;
  for (const auto& node : function.nodes())
    if (node->op() != Op::Save) names.emplace_back(node->def().name);
  return names;
}

}  // namespace aglow::testing_support
