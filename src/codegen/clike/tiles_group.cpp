// Tiles that the items of a group share in local memory: while they multiply one part, the next ones are on their way
// there, or one into registers. Results pass through local memory too, so that neighbouring items store neighbouring
// ones.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/tile_loads.h"
#include "codegen/clike/tiles.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr std::string_view kSteps = R"(LOCAL_ARRAY ulong4 memory[$words];
const int32_t item = (int32_t)LOCAL_ITEM(0);
const $I part = groupDown / $perPart, batch = groupDown % $perPart / $down;
const $I top = groupDown % $down * $rows, side = groupAcross * $columns;
const $I begin = part * $part, end = begin + $part < $k ? begin + $part : $k;
$declarations
#pragma unroll
for (int32_t at = 0; at < $ahead; ++at) {
  const $I first = begin + at * $depth;
  if (first < end) {
$copy
  }
  COPIES_END();
}
{
  const $I first = begin;
  const int32_t at = 0;
$fetch
$put
}
int32_t at = 0;
#pragma unroll 1
for ($I start = begin; start < end; start += $depth) {
  COPIES_WAIT($wait);
  BARRIER();
  {
    const $I first = start + $ahead * $depth;
    if (first < end) {
      const int32_t used = at, at = used == 0 ? $ahead : used - 1;
$copy
    }
    COPIES_END();
  }
  const $I first = start + $depth;
  const bool more = first < end;
  if (more) {
$fetch
  }
$multiply
  at = at == $ahead ? 0 : at + 1;
  if (more) {
$put
  }
}
BARRIER();
)";

// A round for some rows of each item.
constexpr std::string_view kStores = R"(LOCAL $E* stage = (LOCAL $E*)memory;
#pragma unroll 1
for (int32_t round = 0; round < $rounds; ++round) {
$stage
  BARRIER();
  for (int32_t e = item; e < $quads; e += $items) {
    const int32_t line = e / ($columns / 4), beside = e % ($columns / 4) * 4;
    const $I row = top + $row, firstColumn = side + beside;
    if (row >= $m || firstColumn >= $n) continue;
$hand
  }
  BARRIER();
}
)";

// Items are 4 by 8 among the 32 that run in step, each with rows and columns in fours.
constexpr std::string_view kItems = R"(LOCAL $E* lefts = (LOCAL $E*)memory;
LOCAL $E* rights = lefts + $rightAt;
const int32_t across = item % 8 + item / 32 % $wide * 8, down = item % 32 / 8 + item / 32 / $wide * 4;
$V sums[$ownRows][$fours];
#pragma unroll
for (int32_t r = 0; r < $ownRows; ++r)
#pragma unroll
  for (int32_t c = 0; c < $fours; ++c) sums[r][c] = ($V)(0);
)";

// 32 items multiply 16 x 16 by 16 x 8 halves together: each has some of both, and of the results in two rows, 8 apart,
// two neighbours.
constexpr std::string_view kHalves = R"(LOCAL uint16_t* lefts = (LOCAL uint16_t*)memory;
LOCAL uint16_t* rights = lefts + $rightAt;
EXCHANGE($exchanged)
const int32_t lane = item % 32, slow = lane / 4, fast = lane % 4;
const int32_t ownTop = item / 32 / $wide * $ownRows, ownSide = item / 32 % $wide * $ownColumns;
float sums[$ownRows / 16][$ownColumns / 8][4];
#pragma unroll
for (int32_t i = 0; i < $ownRows / 16; ++i)
#pragma unroll
  for (int32_t j = 0; j < $ownColumns / 8; ++j)
#pragma unroll
    for (int32_t e = 0; e < 4; ++e) sums[i][j][e] = 0;
)";
constexpr std::string_view kMultiplyHalves = R"(#pragma unroll
for (int32_t step = 0; step < $depth / 16; ++step) {
  uint32_t a[$ownRows / 16][4], b[$ownColumns / 16][4];
#pragma unroll
  for (int32_t i = 0; i < $ownRows / 16; ++i)
    rows_of_halves(a[i], lefts + (at * $rows + ownTop + i * 16) * $leftLength + step * 16, $leftLength, lane);
#pragma unroll
  for (int32_t j = 0; j < $ownColumns / 16; ++j) {
$columnsOfHalves
  }
#pragma unroll
  for (int32_t i = 0; i < $ownRows / 16; ++i)
#pragma unroll
    for (int32_t j = 0; j < $ownColumns / 8; ++j) MULTIPLY_HALVES(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
}
)";

// From lines along k, or from columns, which come as rows do: those of the first eight before those of the others.
constexpr std::string_view kAcrossLines =
    "columns_of_halves(b[j], rights + (at * $depth + step * 16) * $rightLength + ownSide + j * 16, $rightLength, "
    "lane);";
constexpr std::string_view kFromLines = R"(uint32_t columns[4];
rows_of_halves(columns, rights + (at * $columns + ownSide + j * 16) * $rightLength + step * 16, $rightLength, lane);
b[j][0] = columns[0], b[j][1] = columns[2], b[j][2] = columns[1], b[j][3] = columns[3];)";

constexpr std::string_view kFour = R"({
const $I column = firstColumn;
const int64_t firstPoint = $point;
$T found[4];
const $V all = $all;
found[0] = ($T)all.s0, found[1] = ($T)all.s1, found[2] = ($T)all.s2, found[3] = ($T)all.s3;
$four
}
)";
constexpr std::string_view kOnes = R"(#pragma unroll 1
for (int32_t lane = 0; lane < $lanes; ++lane) {
  const $I column = firstColumn + lane;
  if (column >= $n) break;
  const int64_t point = $point;
  $T given = ($T)$one;
$store
}
)";

// The parts of sums, one after the other.
constexpr std::string_view kAdded = R"(const $I number = point * $lanes;
const $I batch = number / $mn, row = number / $n % $m, firstColumn = number % $n;
$V sum = ($V)(0);
#pragma unroll
for (int32_t part = 0; part < $parts; ++part) sum += *(GLOBAL const $V*)(parts + (int64_t)part * $size + number);
$hand
)";

class GroupWriter {
public:
  GroupWriter(KernelWriter& writer, const Product& p, const GroupTile& tile)
      : writer_(writer),
        p_(p),
        s_(p.sizes),
        tile_(tile),
        element_(vectorName(s_.sums, 1)),
        four_(vectorName(s_.sums, 4)) {
    point_ = p.point.empty() ? fmt::format("(batch * {} + row) * {} + column", s_.m, s_.n) : p.point;
  }

  Launch products(const Handed& handed) {
    const TileLoad left(writer_, p_, tile_, true), right(writer_, p_, tile_, false);
    const int64_t down = ceilDiv(s_.m, tile_.rows), across = ceilDiv(s_.n, tile_.columns);
    std::string text = fill(kSteps, {{"words", ceilDiv(tile_.localBytes(s_.held), 32)},
                                     {"I", writer_.indexType()},
                                     {"perPart", s_.batch * down},
                                     {"down", down},
                                     {"rows", tile_.rows},
                                     {"columns", tile_.columns},
                                     {"part", tile_.part(s_)},
                                     {"k", s_.k},
                                     {"depth", tile_.depth},
                                     {"ahead", tile_.stages - 1},
                                     {"wait", tile_.stages - 2},
                                     {"declarations", own() + left.declarations() + right.declarations()},
                                     {"copy", left.copy() + right.copy()},
                                     {"fetch", left.fetch() + right.fetch()},
                                     {"put", left.put() + right.put()},
                                     {"multiply", tile_.halves ? multipliedHalves() : multiplied()}});
    const int64_t length = stageLength();
    text +=
        fill(kStores,
             {{"E", element_},
              {"I", writer_.indexType()},
              {"rounds", tile_.ownRows / (tile_.halves ? 16 : 4)},
              {"stage", tile_.halves ? stagedHalves() : staged()},
              {"quads", tile_.stagedRows() * tile_.columns / 4},
              {"items", tile_.items()},
              {"columns", tile_.columns},
              {"row", tile_.halves ? fmt::format("line / 16 * {} + round * 16 + line % 16", tile_.ownRows)
                                   : fmt::format("round * {} + line", 4 * tile_.rows / tile_.ownRows)},
              {"m", s_.m},
              {"n", s_.n},
              {"hand", handedOn(handed, 4, fmt::format("*(LOCAL const {}*)(stage + line * {} + beside)", four_, length),
                                fmt::format("stage[line * {} + beside + lane]", length))}});
    return writer_.inGroups(text, across, tile_.partCount(s_) * s_.batch * down, {tile_.items(), 1});
  }

  Launch added(const Handed& handed) {
    const int64_t lanes = handed.four.empty() ? 1 : 4, all = s_.batch * s_.m * s_.n;
    return writer_.perPoint(all / lanes, fill(kAdded, {{"I", writer_.indexType()},
                                                       {"V", vectorName(s_.sums, lanes)},
                                                       {"lanes", lanes},
                                                       {"mn", s_.m * s_.n},
                                                       {"m", s_.m},
                                                       {"n", s_.n},
                                                       {"parts", tile_.partCount(s_)},
                                                       {"size", all},
                                                       {"hand", handedOn(handed, lanes, "sum", "sum")}}));
  }

private:
  int64_t stageLength() const { return tile_.columns + (tile_.halves ? 4 : 0); }

  std::string halves(std::string_view text) const {
    return fill(text, {{"rightAt", tile_.stages * tile_.leftElements()},
                       {"exchanged", tile_.items() * 6},
                       {"wide", tile_.columns / tile_.ownColumns},
                       {"rows", tile_.rows},
                       {"columns", tile_.columns},
                       {"ownRows", tile_.ownRows},
                       {"ownColumns", tile_.ownColumns},
                       {"depth", tile_.depth},
                       {"leftLength", tile_.leftLength()},
                       {"rightLength", tile_.rightLength()}});
  }

  std::string multipliedHalves() const {
    std::string text(kMultiplyHalves);
    constexpr std::string_view kWord = "$columnsOfHalves";
    return halves(text.replace(text.find(kWord), kWord.size(), tile_.columnLines ? kFromLines : kAcrossLines));
  }

  // What each item has of its own.
  std::string own() const {
    if (tile_.halves) return halves(kHalves);
    return fill(kItems, {{"E", element_},
                         {"V", four_},
                         {"rightAt", tile_.stages * tile_.leftElements()},
                         {"wide", tile_.columns / tile_.ownColumns / 8},
                         {"ownRows", tile_.ownRows},
                         {"fours", tile_.ownColumns / 4}});
  }

  std::string multiplied() const {
    std::string text = fmt::format("#pragma unroll\nfor (int32_t k = 0; k < {}; ++k) {{\n", tile_.depth);
    const auto load = [&](const char* name, const char* variable, int64_t lines, int64_t fours, const char* place) {
      for (int64_t q = 0; q < fours; ++q)
        text += fmt::format("const {0} {1}{2} = *(LOCAL const {0}*)({3}s + (at * {4} + k) * {5} + {6} + {7} * 4);\n",
                            four_, variable, q, name, tile_.depth, lines + 4, q * lines / fours, place);
    };
    load("left", "a", tile_.rows, tile_.ownRows / 4, "down");
    load("right", "b", tile_.columns, tile_.ownColumns / 4, "across");
    for (int64_t r = 0; r < tile_.ownRows; ++r)
      for (int64_t c = 0; c < tile_.ownColumns / 4; ++c) {
        const std::string wide = fmt::format("({})(a{}.s{})", four_, r / 4, r % 4);
        const std::string sum = fmt::format("sums[{}][{}]", r, c);
        text += isFloat(s_.sums) ? fmt::format("{0} = MULADD_{1}({2}, b{3}, {0});\n", sum, elemName(s_.sums), wide, c)
                                 : fmt::format("{0} = {1} * b{2} + {0};\n", sum, wide, c);
      }
    return text + "}\n";
  }

  // Round r has the rows 4r to 4r + 3 of each item.
  std::string staged() const {
    const int64_t fours = tile_.ownColumns / 4;
    std::string text;
    for (int64_t round = 0; round < tile_.ownRows / 4; ++round) {
      text += fmt::format("if (round == {}) {{\n", round);
      for (int64_t r = 0; r < 4; ++r)
        for (int64_t c = 0; c < fours; ++c)
          text += fmt::format("*(LOCAL {}*)(stage + (down * 4 + {}) * {} + {} + across * 4) = sums[{}][{}];\n", four_,
                              r, stageLength(), c * tile_.columns / fours, round * 4 + r, c);
      text += "}\n";
    }
    return text;
  }

  std::string stagedHalves() const {
    std::string text = fmt::format("LOCAL float* to = stage + (ownTop / {} * 16 + slow) * {} + ownSide + fast * 2;\n",
                                   tile_.ownRows, stageLength());
    for (int64_t round = 0; round < tile_.ownRows / 16; ++round) {
      text += fmt::format("if (round == {}) {{\n", round);
      for (int64_t j = 0; j < tile_.ownColumns / 8; ++j)
        for (int64_t half = 0; half < 2; ++half)
          text += fmt::format("*(LOCAL float2*)(to + {}) = VECTOR2(float2, sums[{}][{}][{}], sums[{}][{}][{}]);\n",
                              half * 8 * stageLength() + j * 8, round, j, 2 * half, round, j, 2 * half + 1);
      text += "}\n";
    }
    return text;
  }

  // Statements on `lanes` neighbours, at once where they are handed on so: all of them, and the one of a lane.
  std::string handedOn(const Handed& handed, int64_t lanes, const std::string& all, const std::string& one) const {
    const std::string type = typeName(s_.sums);
    if (handed.four.empty())
      return fill(kOnes, {{"I", writer_.indexType()},
                          {"T", type},
                          {"n", s_.n},
                          {"lanes", lanes},
                          {"point", point_},
                          {"one", one},
                          {"store", handed.one}});
    return fill(kFour, {{"I", writer_.indexType()},
                        {"T", type},
                        {"V", four_},
                        {"all", all},
                        {"point", point_},
                        {"four", handed.four}});
  }

  KernelWriter& writer_;
  const Product& p_;
  const ProductSizes& s_;
  GroupTile tile_;
  std::string element_, four_, point_;
};

}  // namespace

std::vector<Launch> groupTiles(KernelWriter& writer, const Product& p, const GroupTile& tile,
                               const std::function<Handed(KernelWriter&)>& hand) {
  if (tile.partCount(p.sizes) == 1) {
    const Handed handed = hand(writer);
    return {GroupWriter(writer, p, tile).products(handed)};
  }
  // Parts are numbered as the product has them, whatever its results do.
  KernelWriter adder = writer;
  for (KernelWriter* one : {&writer, &adder}) one->scratch("parts", p.sizes.sums);
  Product inParts = p;
  inParts.point = fmt::format("((int64_t)part * {} + batch * {} + row) * {} + column", p.sizes.batch * p.sizes.m,
                              p.sizes.m, p.sizes.n);
  const Handed stored{.one = "parts[point] = given;",
                      .four = p.sizes.n % 4 == 0
                                  ? fmt::format("*(GLOBAL {}*)(parts + firstPoint) = all;", vectorName(p.sizes.sums, 4))
                                  : ""};
  Launch products = GroupWriter(writer, inParts, tile).products(stored);
  const Handed handed = hand(adder);
  return {std::move(products), GroupWriter(adder, p, tile).added(handed)};
}

}  // namespace aglow::codegen
