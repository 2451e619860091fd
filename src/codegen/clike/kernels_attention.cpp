// Attention in one pass over the keys: a block of queries meets one block of keys after the other and keeps, for each
// query, the largest score so far, the sum of weights relative to it, and the weighted values. Scores of a block are
// all that is ever stored of the matrix, in local memory. Where heads are wide, queries, keys and values pass through
// it in slices; where there are few queries, several groups share the keys, and what they found is put together.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "codegen/clike/attention_blocks.h"
#include "codegen/clike/kernel_writer.h"
#include "codegen/nest/kinds.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

// What a group and an item have in common: which head, which queries, and which of the keys they can see.
constexpr std::string_view kPlace = R"(const $I head = groupDown, first = groupAcross % $blocks * $Q;
const $I image = head / $heads, ofHead = head % $heads;
const $I shared = image * $groups + ofHead / $served;
const $I lastQuery = first + $Q <= $queries ? first + $Q - 1 : $queries - 1;
const $I firstKey = $firstKey, endKey = $endKey;
)";

// What the score of a query and a key becomes.
constexpr std::string_view kMask = R"($capped
if (!($visible)) score = -INFINITY;
)";

// One item does a block of queries by itself, with vectors of keys and of values.
constexpr std::string_view kOwn = R"(LOCAL_ARRAY float query[$Q * $width];
LOCAL_ARRAY float keyed[$width * $K];
LOCAL_ARRAY float valued[$K * $V];
LOCAL_ARRAY float scores[$Q * $K];
LOCAL_ARRAY float sums[$Q * $V];
LOCAL_ARRAY float most[$Q], total[$Q];
for (int32_t r = 0; r < $Q; ++r) {
  const $I at = first + r < $queries ? first + r : $queries - 1;
  for (int32_t d = 0; d < $width; ++d) query[r * $width + d] = $query * $scale;
  for (int32_t c = 0; c < $V; ++c) sums[r * $V + c] = 0;
  most[r] = -INFINITY;
  total[r] = 0;
}
for ($I start = firstKey; start < endKey; start += $K) {
  const int32_t count = endKey - start < $K ? (int32_t)(endKey - start) : $K;
  for (int32_t i = 0; i < $K; ++i) {
    const $I at = i < count ? start + i : start;
    for (int32_t d = 0; d < $width; ++d) keyed[d * $K + i] = $key;
  }
  for (int32_t i = 0; i < count; ++i) {
    const $I at = start + i;
    for (int32_t c = 0; c < $V; ++c) valued[i * $V + c] = c < $valueWidth ? $value : 0;
  }
  for (int32_t top = 0; top < $Q; top += $rows)
    for (int32_t side = 0; side < $K; side += 16) {
      float16 tile[$rows];
#pragma unroll
      for (int32_t r = 0; r < $rows; ++r) tile[r] = (float16)(0);
      for (int32_t d = 0; d < $width; ++d) {
        const float16 b = vload16(0, keyed + d * $K + side);
#pragma unroll
        for (int32_t r = 0; r < $rows; ++r)
          tile[r] = MULADD_f32((float16)(query[(top + r) * $width + d]), b, tile[r]);
      }
#pragma unroll
      for (int32_t r = 0; r < $rows; ++r) vstore16(tile[r], 0, scores + (top + r) * $K + side);
    }
  for (int32_t r = 0; r < $Q; ++r) {
    const $I asking = first + r;
    if (asking >= $queries) break;
    const int32_t row = r * $K;
    float largest = most[r];
    for (int32_t i = 0; i < $K; ++i) {
      const $I key = start + i;
      float score = scores[row + i];
      if (i >= count) {
        score = -INFINITY;
      } else {
$mask
      }
      scores[row + i] = score;
      largest = fmax(largest, score);
    }
    const float base = largest == -INFINITY ? 0 : largest, kept = exp(most[r] - base);
    float16 parts = (float16)(0);
    for (int32_t i = 0; i < $K; i += 16) {
      const float16 weights = exp(vload16(0, scores + row + i) - (float16)(base));
      vstore16(weights, 0, scores + row + i);
      parts += weights;
    }
    const float8 eight = parts.lo + parts.hi;
    const float4 four = eight.lo + eight.hi;
    const float2 two = four.lo + four.hi;
    total[r] = total[r] * kept + (two.lo + two.hi);
    most[r] = largest;
    if (kept != 1)
      for (int32_t c = 0; c < $V; c += 16) vstore16(vload16(0, sums + r * $V + c) * kept, 0, sums + r * $V + c);
  }
  for (int32_t top = 0; top < $Q; top += $rows)
    for (int32_t side = 0; side < $V; side += 16) {
      float16 tile[$rows];
#pragma unroll
      for (int32_t r = 0; r < $rows; ++r) tile[r] = vload16(0, sums + (top + r) * $V + side);
      for (int32_t i = 0; i < count; ++i) {
        const float16 b = vload16(0, valued + i * $V + side);
#pragma unroll
        for (int32_t r = 0; r < $rows; ++r)
          tile[r] = MULADD_f32((float16)(scores[(top + r) * $K + i]), b, tile[r]);
      }
#pragma unroll
      for (int32_t r = 0; r < $rows; ++r) vstore16(tile[r], 0, sums + (top + r) * $V + side);
    }
}
for (int32_t r = 0; r < $Q; ++r) {
  const $I asking = first + r;
  if (asking >= $queries) break;
$unseen
  for (int32_t c = 0; c < $valueWidth; ++c) {
    const $I point = (head * $queries + asking) * $valueWidth + c;
    float given = most[r] == -INFINITY ? none : sums[r * $V + c] / total[r];
$store
  }
}
)";

// A group shares a block of queries; items have scores and sums in registers, every sixteenth row and column. All
// groups go as many rounds, whatever their queries see: drivers are at their best with loops around barriers that way.
constexpr std::string_view kShared = R"(LOCAL_ARRAY float query[$Q * ($queryLength + 1)];
LOCAL_ARRAY float block[$K * ($longest + 1)];
LOCAL_ARRAY float scores[$Q * ($K + 1)];
LOCAL_ARRAY float most[$Q], kept[$Q], total[$Q];
const int32_t across = (int32_t)LOCAL_ITEM(0), down = (int32_t)LOCAL_ITEM(1), item = down * 16 + across;
$once
if (item < $Q) {
  most[item] = -INFINITY;
  total[item] = 0;
}
float sums[$Q / 16][$V / 16];
for (int32_t r = 0; r < $Q / 16; ++r)
  for (int32_t c = 0; c < $V / 16; ++c) sums[r][c] = 0;
const int32_t part = (int32_t)(groupAcross / $blocks);
for (int32_t round = 0; round < $each; ++round) {
  const $I start = firstKey + (part * $each + round) * $K;
  const int32_t count = endKey - start < $K ? (int32_t)(endKey - start) : $K;
  float tile[$Q / 16][$K / 16];
  for (int32_t r = 0; r < $Q / 16; ++r)
    for (int32_t i = 0; i < $K / 16; ++i) tile[r][i] = 0;
$scores
  for (int32_t r = 0; r < $Q / 16; ++r)
    for (int32_t i = 0; i < $K / 16; ++i) {
      const $I asking = first + down + 16 * r < $queries ? first + down + 16 * r : $queries - 1;
      const $I key = start + across + 16 * i;
      float score = tile[r][i];
      if (across + 16 * i >= count) {
        score = -INFINITY;
      } else {
$mask
      }
      tile[r][i] = score;
      scores[(down + 16 * r) * ($K + 1) + across + 16 * i] = score;
    }
  BARRIER();
  if (item < $Q) {
    float largest = most[item];
    for (int32_t i = 0; i < $K; ++i) largest = fmax(largest, scores[item * ($K + 1) + i]);
    kept[item] = exp(most[item] - (largest == -INFINITY ? 0 : largest));
    most[item] = largest;
  }
$firstValues
  BARRIER();
  for (int32_t r = 0; r < $Q / 16; ++r) {
    const float largest = most[down + 16 * r], base = largest == -INFINITY ? 0 : largest;
    for (int32_t i = 0; i < $K / 16; ++i)
      scores[(down + 16 * r) * ($K + 1) + across + 16 * i] = exp(tile[r][i] - base);
    for (int32_t c = 0; c < $V / 16; ++c) sums[r][c] *= kept[down + 16 * r];
  }
  BARRIER();
  if (item < $Q) {
    float sum = 0;
    for (int32_t i = 0; i < $K; ++i) sum += scores[item * ($K + 1) + i];
    total[item] = total[item] * kept[item] + sum;
  }
$values
}
BARRIER();
)";

// A group that met all keys of its queries.
constexpr std::string_view kWhole = R"(for (int32_t r = 0; r < $Q / 16; ++r) {
  const int32_t row = down + 16 * r;
  const $I asking = first + row;
  if (asking >= $queries) continue;
$unseen
  for (int32_t c = 0; c < $V / 16; ++c) {
    const int32_t column = across + 16 * c;
    if (column >= $valueWidth) continue;
    const $I point = (head * $queries + asking) * $valueWidth + column;
    float given = most[row] == -INFINITY ? none : sums[r][c] / total[row];
$store
  }
}
)";

// One that met some of them: its weighted values, the largest score and the sum of weights, of each query.
constexpr std::string_view kPart = R"(for (int32_t r = 0; r < $Q / 16; ++r) {
  const int32_t row = down + 16 * r;
  const $I asking = first + row;
  if (asking >= $queries) continue;
  GLOBAL float* to = parts + (((int64_t)part * $allHeads + head) * $queries + asking) * ($valueWidth + 2);
  for (int32_t c = 0; c < $V / 16; ++c)
    if (across + 16 * c < $valueWidth) to[across + 16 * c] = sums[r][c];
  if (across == 0) {
    to[$valueWidth] = most[row];
    to[$valueWidth + 1] = total[row];
  }
}
)";

// What all of them found, for an element of the result, in their order.
constexpr std::string_view kTogether = R"(const $I row = point / $valueWidth, column = point % $valueWidth;
const $I head = row / $queries, asking = row % $queries, image = head / $heads, ofHead = head % $heads;
GLOBAL const float* from = parts + (int64_t)row * ($valueWidth + 2);
float largest = -INFINITY, sum = 0, total = 0;
for (int32_t part = 0; part < $parts; ++part)
  largest = fmax(largest, from[(int64_t)part * $size + $valueWidth]);
const float base = largest == -INFINITY ? 0 : largest;
for (int32_t part = 0; part < $parts; ++part) {
  const float weight = exp(from[(int64_t)part * $size + $valueWidth] - base);
  total += weight * from[(int64_t)part * $size + $valueWidth + 1];
  sum += weight * from[(int64_t)part * $size + column];
}
$unseen
float given = largest == -INFINITY ? none : sum / total;
$store
)";

// What passes through local memory of a group: queries with keys, and values, from an element on.
constexpr std::string_view kLoadQuery = R"(for (int32_t e = item; e < $Q * $length; e += 256) {
  const int32_t r = e / $length, d = $from + e % $length;
  const $I at = first + r < $queries ? first + r : $queries - 1;
  query[r * ($length + 1) + d - $from] = $query * $scale;
}
)";
constexpr std::string_view kScoreKeys = R"(for (int32_t e = item; e < $K * $length; e += 256) {
  const int32_t i = e / $length, d = $from + e % $length;
  const $I at = i < count ? start + i : 0;
  block[i * ($length + 1) + d - $from] = $key;
}
BARRIER();
for (int32_t d = 0; d < $length; ++d) {
  float a[$Q / 16], b[$K / 16];
  for (int32_t r = 0; r < $Q / 16; ++r) a[r] = query[(down + 16 * r) * ($length + 1) + d];
  for (int32_t i = 0; i < $K / 16; ++i) b[i] = block[(across + 16 * i) * ($length + 1) + d];
  for (int32_t r = 0; r < $Q / 16; ++r)
    for (int32_t i = 0; i < $K / 16; ++i) tile[r][i] = MULADD_f32(a[r], b[i], tile[r][i]);
}
)";
constexpr std::string_view kLoadValues = R"(for (int32_t e = item; e < $K * $length; e += 256) {
  const int32_t i = e / $length, c = $from + e % $length;
  const $I at = i < count ? start + i : 0;
  block[i * ($length + 1) + c - $from] = i < count && c < $valueWidth ? $value : 0;
}
)";
constexpr std::string_view kAddValues = R"(for (int32_t i = 0; i < $K; ++i) {
  float a[$Q / 16], b[$length / 16];
  for (int32_t r = 0; r < $Q / 16; ++r) a[r] = scores[(down + 16 * r) * ($K + 1) + i];
  for (int32_t c = 0; c < $length / 16; ++c) b[c] = block[i * ($length + 1) + across + 16 * c];
  for (int32_t r = 0; r < $Q / 16; ++r)
    for (int32_t c = 0; c < $length / 16; ++c)
      sums[r][$from / 16 + c] = MULADD_f32(a[r], b[c], sums[r][$from / 16 + c]);
}
BARRIER();
)";

// Statements for each slice of so many elements, one after the other.
template <class Text>
std::string sliced(int64_t elements, int64_t slice, const Text& text) {
  std::string all;
  for (int64_t from = 0; from < elements; from += slice) all += text(from, std::min(slice, elements - from));
  return all;
}

// What a query with no score above minus infinity gives: zeros where it sees no key, otherwise what a softmax of such
// scores is.
constexpr std::string_view kUnseen = R"(float none = 0;
if ($most == -INFINITY)
  for ($I key = 0; key < $keys; ++key)
    if ($visible) none = NAN;
)";

// The element `element` of the row `at` of a head.
std::string rowElement(KernelWriter& writer, size_t input, const char* name, const char* head, int64_t rows,
                       int64_t width, const char* element) {
  writer.input(input, name);
  return elementText(writer.kindOf(input), ElemKind::Float32,
                     fmt::format("{}[({} * {} + at) * {} + {}]", name, head, rows, width, element));
}

// How far behind a query its first or last key lies. Beyond all keys it makes no difference how far, and sums with
// numbers of queries stay in the range of the index type.
int64_t reach(const AttentionSizes& s, int64_t distance) { return std::clamp(distance, -s.queries, s.keys); }

// Of the query `asking` and a key.
struct Sight {
  std::string visible;  // a condition
  std::string addend;   // to the score; empty where there is none
};

Sight sightOf(KernelWriter& writer, const AttentionSizes& s) {
  const int64_t left = writer.attrs().integer("left"), right = writer.attrs().integer("right"),
                offset = writer.attrs().integer("offset");
  Sight sight{.visible = "true", .addend = {}};
  if (left >= 0) sight.visible += fmt::format(" && key >= asking + ({})", reach(s, offset - left));
  if (right >= 0) sight.visible += fmt::format(" && key <= asking + ({})", reach(s, offset + right));
  if (!writer.has(3)) return sight;
  writer.input(3, "mask");
  const std::vector<int64_t> strides =
      broadcastStrides(writer.in(3).shape(), Shape{s.batch, s.heads, s.queries, s.keys});
  const std::string element =
      elementText(writer.kindOf(3), writer.kindOf(3) == ElemKind::Bool ? ElemKind::Bool : ElemKind::Float32,
                  fmt::format("mask[image * {} + ofHead * {} + asking * {} + key * {}]", strides[0], strides[1],
                              strides[2], strides[3]));
  if (writer.kindOf(3) == ElemKind::Bool) {
    sight.visible += " && " + element;
  } else {
    sight.visible += fmt::format(" && {} != -INFINITY", element);
    sight.addend = element;
  }
  return sight;
}

}  // namespace

Decision takesAttention(const Attrs& attrs, const OperandTypes& types, const DeviceShape& shape) {
  const Type &q = *types.in[0], &k = *types.in[1], &v = *types.in[2];
  const bool shared = shape.sharesLocal && shape.groupItems >= kAttentionLanes * kAttentionLanes;
  if (!shape.vectors && !shared) return Decision::no("needs a language with vectors, has none");
  if (nest::computedKind(q.kind()) != ElemKind::Float32)
    return Decision::no(fmt::format("needs elements that are computed in f32, has {}", elemName(q.kind())));
  if (types.out[1] != nullptr) return Decision::no("needs weights that nobody reads, has a reader of them");
  if (attrs.flag("rounded")) return Decision::no("needs weights as they are, has rounded ones");
  if (const ElemKind precision = attrs.elem("precision"); precision != ElemKind::Float32 && precision != q.kind())
    return Decision::no(fmt::format("needs a softmax in f32, has {}", elemName(precision)));
  for (const Type* type : {types.out[0], types.in[0], types.in[1]})
    if (type->elements() == 0) return Decision::no(fmt::format("needs elements, has {}", type->text()));
  if (types.in.size() > 3 && types.in[3] != nullptr)
    if (const ElemKind mask = types.in[3]->kind();
        mask != ElemKind::Bool && (!isFloat(mask) || nest::computedKind(mask) != ElemKind::Float32))
      return Decision::no(fmt::format("needs a mask of bool or f32, has {}", elemName(mask)));
  if (!blocksFor(AttentionSizes(q, k, v), shape))
    return Decision::no(
        fmt::format("needs local memory for queries of {} elements, has {} bytes", q.dim(3), shape.localBytes));
  return Decision::yes();
}

int64_t attentionScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const auto type = [&](size_t i) -> const Type& { return program[anchor.inputs()[i].region].type; };
  const AttentionSizes s(type(0), type(1), type(2));
  const std::optional<AttentionBlocks> blocks = blocksFor(s, shape);
  const int64_t parts = blocks ? roundsFor(s, anchor.attrs, *blocks, shape).parts() : 1;
  return parts == 1 ? 0 : parts * s.batch * s.heads * s.queries * (s.valueWidth + 2) * elemBytes(ElemKind::Float32);
}

std::vector<Launch> attentionLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape), last = writer;
  const AttentionSizes s(writer.in(0), writer.in(1), writer.in(2));
  const std::optional<AttentionBlocks> found = blocksFor(s, shape);
  AGLOW_CHECK(found.has_value(), "attention that local memory was found to hold");
  const AttentionBlocks& b = *found;
  const AttentionRounds rounds = roundsFor(s, writer.attrs(), b, shape);
  const int64_t left = writer.attrs().integer("left"), right = writer.attrs().integer("right"),
                offset = writer.attrs().integer("offset"), blocks = ceilDiv(s.queries, b.queries);
  const Sight sight = sightOf(writer, s);
  std::string capped;
  if (const double cap = writer.attrs().real("softcap"); cap > 0) {
    const std::string text = numberText(ElemKind::Float32, std::bit_cast<uint64_t>(cap));
    capped = fmt::format("score = tanh(score / {0}) * {0};\n", text);
  }
  if (!sight.addend.empty()) capped += fmt::format("score += {};", sight.addend);
  const std::string firstKey =
      left < 0 ? "0" : fmt::format("first + ({0}) > 0 ? first + ({0}) : 0", reach(s, offset - left));
  const std::string endKey = right < 0 ? fmt::format("{}", s.keys)
                                       : fmt::format("lastQuery + ({0}) < {1} ? lastQuery + ({0}) : {1}",
                                                     reach(s, offset + right) + 1, s.keys);
  std::vector<Word> words{
      {"I", writer.indexType()},
      {"Q", b.queries},
      {"K", b.keys},
      {"V", b.values},
      {"rows", b.rows},
      {"blocks", blocks},
      {"each", rounds.each},
      {"parts", rounds.parts()},
      {"size", s.batch * s.heads * s.queries * (s.valueWidth + 2)},
      {"longest", b.longest(s)},
      {"queryLength", b.queryLength(s)},
      {"heads", s.heads},
      {"allHeads", s.batch * s.heads},
      {"groups", s.groups},
      {"served", s.heads / s.groups},
      {"queries", s.queries},
      {"width", s.width},
      {"valueWidth", s.valueWidth},
      {"firstKey", firstKey},
      {"endKey", endKey},
      {"query", rowElement(writer, 0, "q", "head", s.queries, s.width, "d")},
      {"key", rowElement(writer, 1, "k", "shared", s.keys, s.width, "d")},
      {"value", rowElement(writer, 2, "v", "shared", s.keys, s.valueWidth, "c")},
      {"scale", numberText(ElemKind::Float32, std::bit_cast<uint64_t>(writer.attrs().real("scale")))},
      {"mask", fill(kMask, {{"capped", capped}, {"visible", sight.visible}})}};
  const auto filled = [&](std::string_view text, const std::vector<Word>& more) {
    std::vector<Word> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return fill(text, all);
  };
  // What is done with the whole sums, whose largest score has this name.
  const auto store = [&](KernelWriter& one, std::string_view text, std::string_view most) {
    const std::string unseen =
        fill(kUnseen,
             {{"most", std::string(most)}, {"I", writer.indexType()}, {"keys", s.keys}, {"visible", sight.visible}});
    return filled(text, {{"unseen", unseen}, {"store", one.resultIndices("point") + one.epilogue()}});
  };
  const std::string place = filled(kPlace, {});
  if (!b.shared) return {writer.inGroups(place + store(writer, kOwn, "most[r]"), blocks, s.batch * s.heads, {1, 1})};

  const auto slice = [&](std::string_view text, const std::string& from, int64_t length) {
    return filled(text, {{"from", from}, {"length", length}});
  };
  // Queries that are there as a whole are brought there once.
  const bool once = s.width <= b.slice;
  const auto scoresOf = [&](const std::string& from, int64_t length) {
    return (once ? "" : slice(kLoadQuery, from, length)) + slice(kScoreKeys, from, length);
  };
  const int64_t rest = once ? s.width : s.width % b.slice;
  std::string scores;
  if (!once)
    scores = fmt::format("for (int32_t from = 0; from < {}; from += {}) {{\n{}BARRIER();\n}}\n", s.width - rest,
                         b.slice, scoresOf("from", b.slice));
  if (rest > 0) scores += scoresOf(std::to_string(s.width - rest), rest);
  // Sums are in registers, whose numbers are constants.
  const std::string values = sliced(b.values, b.slice, [&](int64_t from, int64_t length) {
    const std::string at = std::to_string(from);
    return (from > 0 ? slice(kLoadValues, at, length) + "BARRIER();\n" : "") + slice(kAddValues, at, length);
  });
  const std::string text =
      place + filled(kShared, {{"once", once ? slice(kLoadQuery, "0", s.width) : ""},
                               {"scores", scores},
                               {"firstValues", slice(kLoadValues, "0", std::min(b.slice, b.values))},
                               {"values", values}});
  const auto launch = [&](const std::string& last) {
    return writer.inGroups(text + last, blocks * rounds.parts(), s.batch * s.heads, {kAttentionLanes, kAttentionLanes});
  };
  if (rounds.parts() == 1) return {launch(store(writer, kWhole, "most[row]"))};
  for (KernelWriter* one : {&writer, &last}) one->scratch("parts", ElemKind::Float32);
  if (writer.has(3)) last.input(3, "mask");
  Launch parts = launch(filled(kPart, {}));
  return {std::move(parts), last.perPoint(last.out().elements(), store(last, kTogether, "largest"))};
}

}  // namespace aglow::codegen
