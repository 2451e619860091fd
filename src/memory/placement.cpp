// Several greedy strategies; none wins everywhere, all are cheap. Those that compare buffers pairwise are left out when
// there are many.
#include "memory/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "support/check.h"

namespace aglow {

namespace {

// Pairwise strategies take a few hundred milliseconds at this many buffers.
constexpr size_t kPairwiseLimit = 4096;

struct Event {
  int32_t time;
  bool begin;  // at one time, ends come first
  int32_t buffer;

  bool operator<(const Event& o) const {
    if (time != o.time) return time < o.time;
    return begin != o.begin ? o.begin : buffer < o.buffer;
  }
};

std::vector<Event> eventsOf(std::span<const Buffer> buffers) {
  std::vector<Event> events;
  events.reserve(buffers.size() * 2);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].bytes == 0) continue;
    events.push_back({buffers[i].begin, true, static_cast<int32_t>(i)});
    events.push_back({buffers[i].end, false, static_cast<int32_t>(i)});
  }
  std::sort(events.begin(), events.end());
  return events;
}

// The gaps of an arena while time goes by. The arena has no end: the last gap is as large as is asked.
class FreeList {
public:
  FreeList() { insert(0, kEndless); }

  int64_t takeBest(int64_t bytes) {
    const auto it = bySize_.lower_bound({bytes, 0});
    return take(byOffset_.find(it->second), bytes);
  }

  int64_t takeLowest(int64_t bytes) {
    auto it = byOffset_.begin();
    while (it->second < bytes) ++it;
    return take(it, bytes);
  }

  void give(int64_t offset, int64_t bytes) {
    auto next = byOffset_.lower_bound(offset);
    if (next != byOffset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = erase(next);
    }
    if (next != byOffset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        erase(before);
      }
    }
    insert(offset, bytes);
  }

private:
  static constexpr int64_t kEndless = int64_t{1} << 62;
  using Gaps = std::map<int64_t, int64_t>;

  void insert(int64_t offset, int64_t bytes) {
    byOffset_.emplace(offset, bytes);
    bySize_.emplace(bytes, offset);
  }
  Gaps::iterator erase(Gaps::iterator it) {
    bySize_.erase({it->second, it->first});
    return byOffset_.erase(it);
  }
  int64_t take(Gaps::iterator it, int64_t bytes) {
    const auto [offset, size] = *it;
    erase(it);
    if (size > bytes) insert(offset + bytes, size - bytes);
    return offset;
  }

  Gaps byOffset_;
  std::set<std::pair<int64_t, int64_t>> bySize_;
};

using Strategy = std::vector<int64_t>(std::span<const Buffer> buffers);

template <bool kBest>
std::vector<int64_t> inTimeOrder(std::span<const Buffer> buffers) {
  std::vector<int64_t> offsets(buffers.size(), 0);
  FreeList gaps;
  for (const Event& event : eventsOf(buffers)) {
    const auto i = static_cast<size_t>(event.buffer);
    if (!event.begin)
      gaps.give(offsets[i], buffers[i].bytes);
    else
      offsets[i] = kBest ? gaps.takeBest(buffers[i].bytes) : gaps.takeLowest(buffers[i].bytes);
  }
  return offsets;
}

// Backwards in time a buffer begins where it ends.
template <Strategy& kForwards>
std::vector<int64_t> reversed(std::span<const Buffer> buffers) {
  std::vector<Buffer> mirrored(buffers.begin(), buffers.end());
  for (Buffer& b : mirrored) b = {b.bytes, -b.end, -b.begin};
  return kForwards(mirrored);
}

// Buffers in a given order, each in the lowest (or tightest) gap that the ones before leave during its life.
template <bool kBest>
std::vector<int64_t> inOrder(std::span<const Buffer> buffers, std::span<const int32_t> order) {
  std::vector<int64_t> offsets(buffers.size(), 0);
  std::vector<int32_t> placed;  // by offset
  placed.reserve(order.size());
  for (const int32_t id : order) {
    const Buffer& buffer = buffers[static_cast<size_t>(id)];
    if (buffer.bytes == 0) continue;
    int64_t top = 0, best = -1, bestGap = 0;
    for (const int32_t other : placed) {
      const Buffer& o = buffers[static_cast<size_t>(other)];
      if (o.begin >= buffer.end || buffer.begin >= o.end) continue;
      const int64_t from = offsets[static_cast<size_t>(other)];
      const int64_t gap = from - top;
      if (gap >= buffer.bytes && (best < 0 || gap < bestGap)) {
        best = top;
        bestGap = gap;
        if (!kBest) break;
      }
      top = std::max(top, from + o.bytes);
    }
    const int64_t offset = best < 0 ? top : best;
    offsets[static_cast<size_t>(id)] = offset;
    const auto next = std::upper_bound(placed.begin(), placed.end(), offset, [&](int64_t at, int32_t other) {
      return at < offsets[static_cast<size_t>(other)];
    });
    placed.insert(next, id);
  }
  return offsets;
}

template <class Key>
std::vector<int32_t> orderBy(std::span<const Buffer> buffers, Key&& key) {
  std::vector<int32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto x = key(buffers[static_cast<size_t>(a)]), y = key(buffers[static_cast<size_t>(b)]);
    return x != y ? y < x : a < b;
  });
  return order;
}

double area(const Buffer& b) { return static_cast<double>(b.bytes) * (b.end - b.begin); }

template <bool kBest>
std::vector<int64_t> bySize(std::span<const Buffer> buffers) {
  return inOrder<kBest>(buffers, orderBy(buffers, [](const Buffer& b) { return std::pair(b.bytes, b.end - b.begin); }));
}
template <bool kBest>
std::vector<int64_t> byArea(std::span<const Buffer> buffers) {
  return inOrder<kBest>(buffers, orderBy(buffers, area));
}
template <bool kBest>
std::vector<int64_t> byLength(std::span<const Buffer> buffers) {
  return inOrder<kBest>(buffers, orderBy(buffers, [](const Buffer& b) { return std::pair(b.end - b.begin, b.bytes); }));
}

struct Row {
  std::string_view name;
  Strategy* run;
  bool pairwise;
};

constexpr Row kStrategies[] = {
    {"time, best fit", inTimeOrder<true>, false},
    {"time, first fit", inTimeOrder<false>, false},
    {"reversed time, best fit", reversed<inTimeOrder<true>>, false},
    {"reversed time, first fit", reversed<inTimeOrder<false>>, false},
    {"size, first fit", bySize<false>, true},
    {"size, best fit", bySize<true>, true},
    {"area, first fit", byArea<false>, true},
    {"area, best fit", byArea<true>, true},
    {"length, first fit", byLength<false>, true},
    {"length, best fit", byLength<true>, true},
};

// Pairs of buffers that the search may look at: some tens of milliseconds.
constexpr double kSearchPairs = 2e7;

int64_t arenaOf(std::span<const Buffer> buffers, std::span<const int64_t> offsets) {
  int64_t bytes = 0;
  for (size_t i = 0; i < buffers.size(); ++i) bytes = std::max(bytes, offsets[i] + buffers[i].bytes);
  return bytes;
}

// Where greed ends above the bound, another order often reaches it: the buffer on top moves forward in the order, or
// two buffers change places, and the change is kept unless it is worse.
Placement searched(std::span<const Buffer> buffers, Placement best, int64_t enough) {
  std::vector<int32_t> order = orderBy(buffers, [](const Buffer& b) { return std::pair(b.bytes, b.end - b.begin); });
  uint64_t state = 1;
  const auto below = [&](size_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>((state >> 33) % limit);
  };
  const auto topOf = [&](std::span<const int64_t> offsets) {
    const auto higher = [&](int32_t a, int32_t b) {
      return offsets[static_cast<size_t>(a)] + buffers[static_cast<size_t>(a)].bytes <
             offsets[static_cast<size_t>(b)] + buffers[static_cast<size_t>(b)].bytes;
    };
    return std::max_element(order.begin(), order.end(), higher);
  };
  std::vector<int64_t> offsets = inOrder<false>(buffers, order);
  int64_t bytes = arenaOf(buffers, offsets);
  const auto n = static_cast<double>(buffers.size());
  for (auto steps = static_cast<int64_t>(kSearchPairs / (n * n)); steps > 0 && best.bytes > enough; --steps) {
    const std::vector<int32_t> before = order;
    if (below(2) == 0) {
      const auto top = topOf(offsets);
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(below(static_cast<size_t>(top - order.begin()) + 1)), top,
                  top + 1);
    } else {
      const size_t first = below(order.size()), second = below(order.size());
      std::swap(order[first], order[second]);
    }
    std::vector<int64_t> tried = inOrder<false>(buffers, order);
    const int64_t needed = arenaOf(buffers, tried);
    if (needed > bytes) {
      order = before;
      continue;
    }
    bytes = needed;
    offsets = std::move(tried);
    if (bytes < best.bytes) best = {offsets, bytes, "search"};
  }
  return best;
}

}  // namespace

int64_t liveBytes(std::span<const Buffer> buffers) {
  int64_t live = 0, most = 0;
  for (const Event& event : eventsOf(buffers)) {
    live += event.begin ? buffers[static_cast<size_t>(event.buffer)].bytes
                        : -buffers[static_cast<size_t>(event.buffer)].bytes;
    most = std::max(most, live);
  }
  return most;
}

Placement placeBuffers(std::span<const Buffer> buffers, int64_t enough) {
  for (const Buffer& b : buffers) AGLOW_CHECK(b.begin < b.end, "a buffer lives for some time");
  enough = std::max(enough, liveBytes(buffers));
  Placement best;
  for (const Row& row : kStrategies) {
    if (row.pairwise && buffers.size() > kPairwiseLimit) continue;
    std::vector<int64_t> offsets = row.run(buffers);
    const int64_t bytes = arenaOf(buffers, offsets);
    if (best.strategy.empty() || bytes < best.bytes) best = {std::move(offsets), bytes, row.name};
    if (best.bytes <= enough) return best;
  }
  return buffers.size() > kPairwiseLimit ? best : searched(buffers, std::move(best), enough);
}

}  // namespace aglow
