// Maximal flow by shortest paths, level graph by level graph. Nothing recurses, since graphs may be thousands deep.
#include "support/min_cut.h"

#include <algorithm>

namespace aglow {

int MinCut::addNode() {
  edges_.emplace_back();
  return static_cast<int>(edges_.size()) - 1;
}

void MinCut::addEdge(int from, int to, int64_t cost) {
  if (from == to || cost == 0) return;
  auto& out = edges_[static_cast<size_t>(from)];
  auto& in = edges_[static_cast<size_t>(to)];
  out.push_back({.to = to, .left = cost, .opposite = in.size()});
  in.push_back({.to = from, .left = 0, .opposite = out.size() - 1});
}

// The distance of each node from the source along edges that are not full; false when the sink is out of reach.
bool MinCut::findLevels() {
  levels_.assign(edges_.size(), -1);
  levels_[kSource] = 0;
  std::vector<int> reached{kSource};
  for (size_t i = 0; i < reached.size(); ++i)
    for (const Edge& edge : edges_[static_cast<size_t>(reached[i])]) {
      int& level = levels_[static_cast<size_t>(edge.to)];
      if (edge.left == 0 || level >= 0) continue;
      level = levels_[static_cast<size_t>(reached[i])] + 1;
      reached.push_back(edge.to);
    }
  return levels_[kSink] >= 0;
}

// One more path from level to level; false when there is none.
bool MinCut::augment() {
  std::vector<Edge*> path;
  int at = kSource;
  while (at != kSink) {
    auto& out = edges_[static_cast<size_t>(at)];
    size_t& next = next_[static_cast<size_t>(at)];
    const auto level = [&](int node) { return levels_[static_cast<size_t>(node)]; };
    while (next < out.size() && (out[next].left == 0 || level(out[next].to) != level(at) + 1)) ++next;
    if (next < out.size()) {
      path.push_back(&out[next]);
      at = out[next].to;
    } else if (path.empty()) {
      return false;
    } else {  // a dead end, never to be tried again
      levels_[static_cast<size_t>(at)] = -1;
      at = edges_[static_cast<size_t>(at)][path.back()->opposite].to;
      path.pop_back();
    }
  }
  int64_t flow = kNever;
  for (const Edge* edge : path) flow = std::min(flow, edge->left);
  for (Edge* edge : path) {
    edge->left -= flow;
    edges_[static_cast<size_t>(edge->to)][edge->opposite].left += flow;
  }
  return true;
}

std::vector<bool> MinCut::sourceSide() {
  while (findLevels()) {
    next_.assign(edges_.size(), 0);
    while (augment()) {
    }
  }
  // The sink's side is only what must be there: what still reaches the sink.
  std::vector<bool> source(edges_.size(), true);
  source[kSink] = false;
  std::vector<int> reaching{kSink};
  for (size_t i = 0; i < reaching.size(); ++i)
    for (const Edge& edge : edges_[static_cast<size_t>(reaching[i])]) {
      if (!source[static_cast<size_t>(edge.to)] || edges_[static_cast<size_t>(edge.to)][edge.opposite].left == 0)
        continue;
      source[static_cast<size_t>(edge.to)] = false;
      reaching.push_back(edge.to);
    }
  return source;
}

}  // namespace aglow
