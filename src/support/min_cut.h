// The cheapest way to divide a graph in two, by maximal flow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aglow {

class MinCut {
public:
  static constexpr int kSource = 0;
  static constexpr int kSink = 1;
  static constexpr int64_t kNever = int64_t{1} << 60;  // the price of an edge that no cut may have

  MinCut() : edges_(2) {}

  int addNode();
  // What it costs to have `from` on the source's side and `to` on the sink's.
  void addEdge(int from, int to, int64_t cost);
  // Which nodes are on the source's side in a cheapest cut: of all those, the one with most of them there.
  std::vector<bool> sourceSide();

private:
  struct Edge {
    int to = 0;
    int64_t left = 0;     // what may still flow
    size_t opposite = 0;  // its place among the edges of `to`
  };

  bool findLevels();
  bool augment();

  std::vector<std::vector<Edge>> edges_;
  std::vector<int> levels_;
  std::vector<size_t> next_;  // the edge to try next, by node
};

}  // namespace aglow
