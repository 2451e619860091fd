// Which of several ways to write a kernel is taken, where a model of the device gives an order and a measurement may
// give another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace aglow::codegen {

class Ways {
public:
  virtual ~Ways() = default;
  // The number of the way that is taken; the best by the model comes first. The question says all that the answer may
  // depend on besides the device.
  virtual size_t choose(const std::string& question, std::span<const std::string> ways) const = 0;
};

// One of those that a model knows the costs of: the cheapest where nobody else chooses. Who does is asked for those
// only that may be quicker after all: what costs twice as much by the model never was.
template <class T, class NameOf>
T cheapestOr(const Ways* ways, const std::string& question, std::vector<std::pair<double, T>> found, NameOf&& nameOf) {
  constexpr double kFar = 2;
  constexpr size_t kMost = 12;
  const auto cheaper = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (ways == nullptr) return std::min_element(found.begin(), found.end(), cheaper)->second;
  std::sort(found.begin(), found.end(), cheaper);
  std::vector<std::string> names;
  for (const auto& [cost, way] : found)
    if (names.size() < kMost && cost <= kFar * found.front().first) names.push_back(nameOf(way));
  return found[ways->choose(question, names)].second;
}

}  // namespace aglow::codegen
