// The cheapest cut against all cuts there are.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/min_cut.h"
#include "support/rng.h"

namespace aglow {
namespace {

struct Edge {
  int from, to;
  int64_t cost;
};

int64_t costOf(const std::vector<Edge>& edges, const std::vector<bool>& source) {
  int64_t cost = 0;
  for (const Edge& edge : edges)
    if (source[static_cast<size_t>(edge.from)] && !source[static_cast<size_t>(edge.to)]) cost += edge.cost;
  return cost;
}

TEST(MinCut, IsTheCheapestAndLeavesMostToTheSource) {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    const int nodes = static_cast<int>(rng.between(2, 9));
    MinCut cut;
    for (int i = 2; i < nodes; ++i) EXPECT_EQ(cut.addNode(), i);
    std::vector<Edge> edges;
    for (int64_t i = rng.between(0, 25); i > 0; --i) {
      const Edge edge{static_cast<int>(rng.between(0, nodes - 1)), static_cast<int>(rng.between(0, nodes - 1)),
                      rng.between(0, 5)};
      edges.push_back(edge);
      cut.addEdge(edge.from, edge.to, edge.cost);
    }
    int64_t least = MinCut::kNever;
    std::vector<bool> largest;
    for (unsigned choice = 0; choice < 1U << (nodes - 2); ++choice) {
      std::vector<bool> source{true, false};
      for (int i = 2; i < nodes; ++i) source.push_back((choice >> (i - 2) & 1U) != 0);
      const int64_t cost = costOf(edges, source);
      const auto size = [](const std::vector<bool>& s) { return std::count(s.begin(), s.end(), true); };
      if (cost < least || (cost == least && size(source) > size(largest))) largest = source;
      least = std::min(least, cost);
    }
    EXPECT_EQ(cut.sourceSide(), largest);
  }
}

TEST(MinCut, TakesDeepGraphs) {
  constexpr int kNodes = 200000;
  MinCut cut;
  int last = MinCut::kSource;
  for (int i = 0; i < kNodes; ++i) {
    const int next = cut.addNode();
    cut.addEdge(last, next, i == kNodes / 2 ? 1 : 2);
    last = next;
  }
  cut.addEdge(last, MinCut::kSink, MinCut::kNever);
  const std::vector<bool> source = cut.sourceSide();
  EXPECT_EQ(std::count(source.begin(), source.end(), true), kNodes / 2 + 1);
}

}  // namespace
}  // namespace aglow
