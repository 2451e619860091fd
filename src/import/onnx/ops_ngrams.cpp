// TfIdfVectorizer on numbers: all windows of a row are compared with all known n-grams.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

struct Vocabulary {
  int64_t shortest, longest, skips;
  int64_t columns = 0;  // of the result
  // N-grams of each length, and the column in which each is counted.
  std::map<int64_t, std::map<std::vector<int64_t>, int64_t>> grams;
};

Vocabulary readVocabulary(const OpImport& c) {
  if (c.hasAttr("pool_strings")) fail(Code::UnsupportedFeature, "n-grams of strings are not supported");
  Vocabulary v{c.integer("min_gram_length"), c.integer("max_gram_length"), c.integer("max_skip_count")};
  const std::vector<int64_t> pool = c.ints("pool_int64s"), starts = c.ints("ngram_counts"),
                             columns = c.ints("ngram_indexes");
  constexpr int64_t kMost = 1 << 20;
  if (v.shortest < 1 || v.longest < v.shortest || v.longest > kMost || v.skips < 0 || v.skips > kMost ||
      columns.empty())
    fail(Code::BadNode,
         fmt::format("expected lengths in order, skips and columns, got lengths {} to {}, {} skips and {} columns",
                     v.shortest, v.longest, v.skips, columns.size()));
  for (const int64_t column : columns) {
    if (column < 0 || column > kMost)
      fail(Code::BadNode, fmt::format("expected columns from 0 to {}, got {}", kMost, column));
    v.columns = std::max(v.columns, column + 1);
  }
  size_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1, from = starts[i],
                  to = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()))
      fail(Code::BadNode,
           fmt::format("expected 'ngram_counts' in order and inside of the pool, got {}", listText(starts)));
    for (int64_t at = from; at + length <= to; at += length, ++gram) {
      if (gram >= columns.size()) fail(Code::BadNode, "expected a column in 'ngram_indexes' for every n-gram");
      if (length >= v.shortest && length <= v.longest)
        v.grams[length][{pool.begin() + at, pool.begin() + at + length}] = columns[gram];
    }
  }
  return v;
}

// How often each n-gram of one length occurs in the rows of x, [rows, n-grams]; empty when none fits.
Value countsOf(Builder& b, Value x, const Vocabulary& v, int64_t length,
               const std::map<std::vector<int64_t>, int64_t>& grams) {
  const int64_t rows = x.dim(0), extent = x.dim(1);
  std::vector<int64_t> places, known;
  // Single elements skip nothing.
  for (int64_t distance = 1; distance <= (length == 1 ? 1 : v.skips + 1); ++distance) {
    constexpr size_t kMost = 1 << 24;
    if (places.size() > kMost) fail(Code::TooLarge, fmt::format("rows of {} elements have too many windows", extent));
    for (int64_t start = 0; start + (length - 1) * distance < extent; ++start)
      for (int64_t i = 0; i < length; ++i) places.push_back(start + i * distance);
  }
  const auto windows = static_cast<int64_t>(places.size()) / length, count = static_cast<int64_t>(grams.size());
  if (windows == 0) return {};
  for (const auto& [gram, column] : grams) known.insert(known.end(), gram.begin(), gram.end());
  const Type placesType(ElemKind::Int64, Shape{windows, 1, length}), knownType(ElemKind::Int64, Shape{count, length});
  const Value seen = b.gather(x, b.constant(Tensor::of(placesType, places)), {.axis = 1});
  const Value equal = b.reduced(b.equal(seen, b.constant(Tensor::of(knownType, known))), "min", {3}, false);
  return b.reshaped(b.reduced(b.casted(equal, ElemKind::Float32), "sum", {1}, false), {rows, count});
}

void tfIdfVectorizer(OpImport& c) {
  Builder& b = c.b;
  const Value input = c.in(0);
  const std::string mode = c.word("mode");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    fail(Code::BadNode, fmt::format("expected 'mode' TF, IDF or TFIDF, got '{}'", mode));
  if (input.rank() > 2 || !isInteger(input.kind()))
    fail(Code::BadNode, fmt::format("expected integers with up to 2 axes, got {}", input.type().text()));
  const Vocabulary v = readVocabulary(c);
  const bool batched = input.rank() == 2;
  const Value x = b.casted(batched ? input : b.reshaped(input, {1, input.type().elements()}), ElemKind::Int64);

  // Counts go to their columns, as rows of the turned result.
  Value counts = b.splat({.elem = ElemKind::Float32, .shape = {v.columns, x.dim(0)}});
  for (const auto& [length, grams] : v.grams) {
    const Value found = countsOf(b, x, v, length, grams);
    if (!found) continue;
    std::vector<int64_t> columns;
    for (const auto& [gram, column] : grams) columns.push_back(column);
    counts = b.scatter(counts, b.ints(columns), b.transposed(found, {1, 0}), {.reduction = "add"});
  }
  Value y = b.transposed(counts, {1, 0});
  if (mode == "IDF") y = b.min(y, b.scalarLike(y, 1));
  if (const std::vector<double> weights = c.reals("weights"); mode != "TF" && !weights.empty()) {
    if (static_cast<int64_t>(weights.size()) != v.columns)
      fail(Code::BadNode, fmt::format("expected {} weights, got {}", v.columns, weights.size()));
    y = b.mul(y, b.constant(Tensor::of(Type(y.kind(), Shape{v.columns}), weights)));
  }
  c.out(batched ? y : b.reshaped(y, {v.columns}));
}

}  // namespace

std::span<const OpRow> ngramRows() {
  static constexpr OpRow rows[] = {{"TfIdfVectorizer", tfIdfVectorizer, 9}};
  return rows;
}

}  // namespace aglow::onnx
