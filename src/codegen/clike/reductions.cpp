#include "codegen/clike/reductions.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr int64_t kPartBytes = 8;  // of any sum

// A group has neighbouring results, or few of them and many of their points; it ends with the whole sums in its first
// items.
constexpr std::string_view kShared = R"(const int32_t item = (int32_t)LOCAL_ITEM(0);
const int32_t beside = item $besideOf, lane = item $laneOf;
const $I part = ($I)GROUP(0) / $blocks, wanted = ($I)GROUP(0) % $blocks * $across + beside;
const bool there = wanted < $results;
const $I row = there ? wanted : $results - 1;
const $I from = part * $part, end = from + $part < $points ? from + $part : $points;
const $I begin = there ? from + lane : end;
)";

// An item has one of the results, or one of its parts; neighbouring items have neighbouring results.
constexpr std::string_view kAlone = R"(const $I part = point / $results, row = point % $results;
const $I begin = part * $part, end = begin + $part < $points ? begin + $part : $points;
)";

// What items of a group would do, one item does for all of them, in vectors if the compiler finds some: it has a sum
// for each. Those of neighbouring results are handed on one by one; those of one result are combined, with what points
// there are after whole steps.
constexpr std::string_view kLanes = R"($starts
const $I part = ($I)GROUP(0) / $blocks, firstRow = ($I)GROUP(0) % $blocks * $across;
const $I begin = part * $part, end = begin + $part < $points ? begin + $part : $points;
const $I whole = begin + (end - begin) / $deep * $deep;
for ($I step = begin; step < whole; step += $deep)
for (int32_t lane = 0; lane < $lanes; ++lane) {
const $I row = firstRow + $laneOfRow, at = step + $laneOfPoint;
$row
$take
$inner
$each
$put
}
)";
constexpr std::string_view kEachResult = R"(for (int32_t lane = 0; lane < $lanes; ++lane) {
const $I row = firstRow + lane, point = row;
(void)point;
$row
$take
$finish
}
)";
constexpr std::string_view kOneResult = R"(const $I row = firstRow, point = row;
(void)point;
$row
$first
for (int32_t lane = 1; lane < $lanes; ++lane) {
$join
}
for ($I at = whole; at < end; ++at) {
$inner
$each
}
$finish
)";

constexpr std::string_view kPasses = R"($unroll
for ($I at = begin; at < end; at += $deep) {
$inner
$each
}
)";

// The upper half of the items that have a sum hands it to the lower one.
constexpr std::string_view kJoin = R"({
$places
for (int32_t width = $deep; width > 1; width = (width + 1) / 2) {
$put
BARRIER();
const int32_t left = (width + 1) / 2;
if (lane < width - left) {
const int32_t other = (lane + left) * $laneStep + beside * $besideStep;
$take
}
BARRIER();
}
}
)";
constexpr std::string_view kJoined = R"(if (lane > 0 || !there) return;
const $I point = row;
(void)point;
)";

class ReductionWriter {
public:
  ReductionWriter(KernelWriter writer, const Reduction& reduction, const ReductionSizes& sizes, const ReductionCut& cut)
      : writer_(std::move(writer)), r_(reduction), sizes_(sizes), cut_(cut) {}

  KernelWriter& writer() { return writer_; }

  // Points are those of `each`, under `inner` indices.
  Launch launch(const std::string& row, const std::string& inner, const std::string& each, const std::string& finish) {
    if (!writer_.shape().sharesLocal && cut_.items() > 1) return lanes(row, inner, each, finish);
    const bool shared = cut_.deep > 1;
    const int64_t blocks = ceilDiv(sizes_.results, cut_.across);
    const bool side = sizes_.beside > 1;
    const std::vector<Word> words = {
        {"I", writer_.indexType()},
        {"besideOf", fmt::format("{} {}", side ? "%" : "/", side ? cut_.across : cut_.deep)},
        {"laneOf", fmt::format("{} {}", side ? "/" : "%", side ? cut_.across : cut_.deep)},
        {"laneStep", side ? cut_.across : 1},
        {"besideStep", side ? 1 : cut_.deep},
        {"blocks", blocks},
        {"across", cut_.across},
        {"deep", cut_.deep},
        {"part", cut_.part},
        {"results", sizes_.results},
        {"points", sizes_.points},
        {"unroll", writer_.shape().sharesLocal ? "#pragma unroll 4" : ""},
        {"inner", inner},
        {"each", each}};
    std::string text = fill(shared ? kShared : kAlone, words) + row;
    for (size_t i = 0; i < r_.sums.size(); ++i) {
      const nest::Combination& sum = r_.sums[i];
      text += fmt::format("{} r{} = {};\n", typeName(sum.kind), i, numberText(sum.kind, sum.start));
    }
    if (!shared) return writer_.perPoint(sizes_.results * cut_.parts, text + fill(kPasses, words) + finish);
    std::vector<ElemKind> kinds;
    kinds.reserve(r_.sums.size());
    for (const nest::Combination& sum : r_.sums) kinds.push_back(sum.kind);
    const auto all = static_cast<int64_t>(kinds.size());
    const LocalSums places(kinds, all, cut_.items(), writer_.shape());
    AGLOW_CHECK(!r_.join || places.atOnce() == all, "sums that are combined together are there together");
    text += places.array("sums", cut_.items()) + fill(kPasses, words);
    for (int64_t from = 0; from < all; from += places.atOnce())
      text += handedOn(words, places, kinds, from, std::min(from + places.atOnce(), all));
    text += fill(kJoined, words) + finish;
    return writer_.finish(text, {blocks * cut_.parts * cut_.items(), 1}, {cut_.items(), 1});
  }

  // Where the sums of parts lie, and the statements that put them there and combine them.
  void partials(int64_t parts) {
    parts_ = parts;
    for (size_t i = 0; i < r_.sums.size(); ++i) writer_.scratch(fmt::format("parts{}", i), r_.sums[i].kind);
  }
  std::string keep() const {
    std::string text;
    for (size_t i = 0; i < r_.sums.size(); ++i)
      text += fmt::format("{} = {};\n", partial(i, "part"), storedText(r_.sums[i].kind, fmt::format("r{}", i)));
    return text;
  }
  std::string join() const {
    std::vector<std::string> others;
    others.reserve(r_.sums.size());
    for (size_t i = 0; i < r_.sums.size(); ++i) others.push_back(loadedText(r_.sums[i].kind, partial(i, "at")));
    return joined(others);
  }

private:
  // Some of the sums of a group come to its first items.
  std::string handedOn(std::vector<Word> words, const LocalSums& places, const std::vector<ElemKind>& kinds,
                       int64_t from, int64_t to) const {
    std::string pointers, put, take;
    std::vector<std::string> others(kinds.size());
    for (int64_t i = from; i < to; ++i) {
      const auto at = static_cast<size_t>(i);
      pointers += places.pointer(kinds[at], fmt::format("s{}", i), "sums", i - from, cut_.items());
      put += fmt::format("s{0}[item] = r{0};\n", i);
      others[at] = fmt::format("s{}[other]", i);
      if (!r_.join) take += joined(at, others[at]);
    }
    words.insert(words.end(), {{"places", pointers}, {"put", put}, {"take", r_.join ? r_.join(others) : take}});
    return fill(kJoin, words);
  }

  Launch lanes(const std::string& row, const std::string& inner, const std::string& each, const std::string& finish) {
    std::string starts, first, take, put;
    std::vector<std::string> others;
    for (size_t i = 0; i < r_.sums.size(); ++i) {
      const nest::Combination& sum = r_.sums[i];
      starts += fmt::format("{0} s{1}[{2}];\nfor (int32_t lane = 0; lane < {2}; ++lane) s{1}[lane] = {3};\n",
                            typeName(sum.kind), i, cut_.items(), numberText(sum.kind, sum.start));
      first += fmt::format("{0} r{1} = s{1}[0];\n", typeName(sum.kind), i);
      take += fmt::format("{0} r{1} = s{1}[lane];\n", typeName(sum.kind), i);
      put += fmt::format("s{0}[lane] = r{0};\n", i);
      others.push_back(fmt::format("s{}[lane]", i));
    }
    const int64_t blocks = ceilDiv(sizes_.results, cut_.across);
    const std::vector<Word> words = {{"I", writer_.indexType()},
                                     {"starts", starts},
                                     {"blocks", blocks},
                                     {"across", cut_.across},
                                     {"deep", cut_.deep},
                                     {"lanes", cut_.items()},
                                     {"part", cut_.part},
                                     {"points", sizes_.points},
                                     {"laneOfRow", cut_.across > 1 ? "lane" : "0"},
                                     {"laneOfPoint", cut_.deep > 1 ? "lane" : "0"},
                                     {"row", row},
                                     {"inner", inner},
                                     {"each", each},
                                     {"first", first},
                                     {"take", take},
                                     {"put", put},
                                     {"join", joined(others)},
                                     {"finish", finish}};
    return writer_.finish(fill(kLanes, words) + fill(cut_.across > 1 ? kEachResult : kOneResult, words),
                          {blocks * cut_.parts, 1}, {1, 1});
  }

  std::string joined(const std::vector<std::string>& others) const {
    if (r_.join) return r_.join(others);
    std::string text;
    for (size_t i = 0; i < r_.sums.size(); ++i) text += joined(i, others[i]);
    return text;
  }
  std::string joined(size_t i, const std::string& other) const {
    const nest::Combination& sum = r_.sums[i];
    return fmt::format("r{} = {};\n", i, appliedText(sum.combine, sum.kind, fmt::format("r{}", i), other));
  }
  // Of a part, whose number is a variable.
  std::string partial(size_t i, const char* part) const {
    const int64_t first = static_cast<int64_t>(i) * parts_ * sizes_.results * kPartBytes / elemBytes(r_.sums[i].kind);
    return fmt::format("parts{}[{} + {} * {} + row]", i, first, part, sizes_.results);
  }

  KernelWriter writer_;
  const Reduction& r_;
  ReductionSizes sizes_;
  ReductionCut cut_;
  int64_t parts_ = 0;
};

}  // namespace

LocalSums::LocalSums(std::span<const ElemKind> kinds, int64_t meet, int64_t places, const DeviceShape& shape)
    : kind_(kinds.front()) {
  for (const ElemKind kind : kinds)
    if (elemBytes(kind) > elemBytes(kind_)) kind_ = kind;
  if (std::ranges::any_of(kinds, [&](ElemKind kind) { return kind != kind_; })) kind_ = rawKind(kind_);
  constexpr int64_t kKept = 256;  // by drivers
  const int64_t room = (shape.localBytes / 2 - kKept) / (places * elemBytes(kind_));
  atOnce_ = std::clamp<int64_t>(meet, 1, std::max<int64_t>(room, 1));
}

std::string LocalSums::array(std::string_view name, int64_t places) const {
  return fmt::format("LOCAL_ARRAY {} {}[{}];\n", typeName(kind_), name, atOnce_ * places);
}

std::string LocalSums::pointer(ElemKind kind, std::string_view name, std::string_view array, int64_t slot,
                               int64_t places) const {
  return fmt::format("LOCAL {0}* {1} = (LOCAL {0}*)({2} + {3});\n", typeName(kind), name, array, slot * places);
}

ReductionCut reductionCut(const ReductionSizes& s, const DeviceShape& shape) {
  // Of a unit: items that it has room for, or enough for its share of them to be even.
  const int64_t wanted = std::max<int64_t>(shape.computeUnits, 1) * (shape.sharesLocal ? 2048 : s.inStep ? 16 : 128);
  // Points of an item: with fewer, others are no help; and with fewer than that, neither is a second kernel.
  constexpr int64_t kMostLanes = 16;
  constexpr int64_t kLeastShared = 8, kLeastOfPart = 16, kManyAlone = 64, kLeastAlone = 1024;
  ReductionCut cut;
  if (shape.sharesLocal) {
    const int64_t group = std::min<int64_t>(shape.groupItems, 256);
    if (s.beside > 1) {
      // Neighbours for all items that run in step, if there are so many, and the rest of the group for their points.
      cut.across = ceilDiv(s.beside, ceilDiv(s.beside, std::min(shape.stepItems, group)));
      while (s.results * cut.deep < wanted && 2 * cut.deep * cut.across <= group &&
             s.points >= 2 * cut.deep * kLeastShared)
        cut.deep *= 2;
    } else {
      while (2 * cut.deep <= group && 4 * cut.deep <= s.points) cut.deep *= 2;
    }
    while (2 * cut.items() <= group / 2 && s.results >= 2 * cut.across * shape.computeUnits) cut.across *= 2;
    if (cut.deep == 1) cut.across = 1;
  } else if (s.inStep && s.points >= 4 * kMostLanes) {
    if (s.beside > 1)
      for (cut.across = kMostLanes; s.beside % cut.across != 0 || s.results % cut.across != 0;) cut.across /= 2;
    if (cut.across == 1) cut.deep = kMostLanes;
  }
  const int64_t each = shape.sharesLocal ? ceilDiv(s.points, cut.deep) : s.points;  // of an item
  const bool many = each >= (shape.sharesLocal ? kManyAlone : 2 * kLeastAlone);
  if (many) {
    const int64_t most = each / (shape.sharesLocal ? kLeastOfPart : kLeastAlone);
    const int64_t items = ceilDiv(s.results, cut.across) * (shape.sharesLocal ? cut.items() : 1);
    cut.parts = std::clamp<int64_t>(wanted / std::max<int64_t>(items, 1), 1, most);
  }
  cut.part = ceilDiv(ceilDiv(s.points, cut.parts), cut.deep) * cut.deep;
  cut.part = std::max<int64_t>(cut.part, 1);
  cut.parts = std::max<int64_t>(ceilDiv(s.points, cut.part), 1);
  return cut;
}

int64_t reductionScratch(const ReductionSizes& sizes, const DeviceShape& shape) {
  const int64_t parts = reductionCut(sizes, shape).parts;
  return parts == 1 ? 0 : parts * sizes.results * sizes.sums * kPartBytes;
}

std::vector<Launch> reductionLaunches(const KernelWriter& writer, const Reduction& r) {
  const ReductionCut cut = reductionCut(r.sizes, writer.shape());
  ReductionWriter first(writer, r, r.sizes, cut);
  r.operands(first.writer());
  const std::string row = writer.indices(r.results, "row") + r.row;
  const std::string inner = writer.indices(r.points, "at", r.results.size());
  if (cut.parts == 1) return {first.launch(row, inner, r.each, r.finish(first.writer()))};
  // Parts lie in order, results side by side.
  const ReductionSizes ofParts{.results = r.sizes.results,
                               .points = cut.parts,
                               .beside = r.sizes.results,
                               .sums = r.sizes.sums,
                               .inStep = r.sizes.inStep};
  ReductionCut joined = reductionCut(ofParts, writer.shape());
  joined.parts = 1;
  joined.part = cut.parts;
  ReductionWriter second(writer, r, ofParts, joined);
  r.operands(second.writer());
  for (ReductionWriter* one : {&first, &second}) one->partials(cut.parts);
  std::vector<Launch> launches = {first.launch(row, inner, r.each, first.keep())};
  launches.push_back(second.launch(row, "", second.join(), r.finish(second.writer())));
  return launches;
}

}  // namespace aglow::codegen
