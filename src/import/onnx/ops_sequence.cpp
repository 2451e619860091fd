// Sequences and optionals: lists that exist only while the model is imported.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/host_values.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

const std::vector<Imported>& itemsOf(const OpImport& c, int input) {
  if (c.operand(input).kind == Imported::Kind::Labelled) throw BuildFailure(needsRuntime());
  if (c.operand(input).kind != Imported::Kind::Sequence)
    fail(Code::BadNode, fmt::format("expected a sequence as input {}", input));
  return c.operand(input).items;
}

// A position in [-count, limit), from the front.
size_t position(OpImport& c, int input, size_t count, size_t limit) {
  const int64_t given = c.constantInt(input), size = static_cast<int64_t>(count);
  if (given < -size || given >= static_cast<int64_t>(limit))
    fail(Code::BadNode, fmt::format("expected a position inside of a sequence of {} elements, got {}", count, given));
  return static_cast<size_t>(given < 0 ? given + size : given);
}

void checkKind(const Imported& item, const std::vector<Imported>& items) {
  if (items.empty() || item.kind != Imported::Kind::Tensor || items.front().kind != Imported::Kind::Tensor) return;
  if (item.tensor.kind() != items.front().tensor.kind())
    fail(Code::BadNode, fmt::format("expected elements of kind {}, got {}", elemName(items.front().tensor.kind()),
                                    item.tensor.type().text()));
}

void construct(OpImport& c) {
  std::vector<Imported> items;
  for (const Value v : c.all()) {
    items.push_back(Imported::of(v));
    checkKind(items.back(), items);
  }
  c.out(0, Imported::sequence(std::move(items)));
}

void empty(OpImport& c) { c.out(0, Imported::sequence({})); }

void at(OpImport& c) {
  const std::vector<Imported>& items = itemsOf(c, 0);
  c.out(0, items[position(c, 1, items.size(), items.size())]);
}

void insert(OpImport& c) {
  std::vector<Imported> items = itemsOf(c, 0);
  const Imported item = Imported::of(c.in(1));
  checkKind(item, items);
  const size_t place = c.has(2) ? position(c, 2, items.size(), items.size() + 1) : items.size();
  items.insert(items.begin() + static_cast<int64_t>(place), item);
  c.out(0, Imported::sequence(std::move(items)));
}

void erase(OpImport& c) {
  std::vector<Imported> items = itemsOf(c, 0);
  if (items.empty()) fail(Code::BadNode, "expected an element to erase, got an empty sequence");
  const size_t place = c.has(1) ? position(c, 1, items.size(), items.size()) : items.size() - 1;
  items.erase(items.begin() + static_cast<int64_t>(place));
  c.out(0, Imported::sequence(std::move(items)));
}

void length(OpImport& c) {
  const std::vector<int64_t> count{static_cast<int64_t>(itemsOf(c, 0).size())};
  c.out(c.b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), count)));
}

void splitToSequence(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int64_t axis = c.axis(c.integer("axis", 0), x.rank()), extent = x.dim(static_cast<int>(axis));
  const bool keep = c.flag("keepdims", true) || c.has(1);
  std::vector<int64_t> parts;
  if (c.has(1) && c.in(1).rank() == 1) {
    parts = c.constantInts(1);
  } else {
    const int64_t part = c.has(1) ? c.constantInt(1) : 1;
    constexpr int64_t kMost = 1 << 20;
    if (part < 1 || extent / part > kMost)
      fail(Code::BadNode, fmt::format("expected a positive length that gives up to {} parts, got {}", kMost, part));
    for (int64_t left = extent; left > 0; left -= part) parts.push_back(std::min(left, part));
  }
  std::vector<Imported> items;
  int64_t start = 0;
  for (const int64_t part : parts) {
    if (part < 0 || part > extent - start)
      fail(Code::BadNode, fmt::format("expected parts that add up to {}, got {}", extent, listText(parts)));
    Value v = sliced(b, x, axis, start, part);
    if (!keep) {
      std::vector<int64_t> dims = v.shape().dims();
      dims.erase(dims.begin() + axis);
      v = b.reshape(v, {.shape = std::move(dims)});
    }
    items.push_back(Imported::of(v));
    start += part;
  }
  if (start != extent)
    fail(Code::BadNode, fmt::format("expected parts that add up to {}, got {}", extent, listText(parts)));
  c.out(0, Imported::sequence(std::move(items)));
}

void concatFromSequence(OpImport& c) {
  std::vector<Value> parts;
  for (const Imported& item : itemsOf(c, 0)) {
    if (item.kind != Imported::Kind::Tensor) fail(Code::BadNode, "expected a sequence of tensors");
    parts.push_back(item.tensor);
  }
  if (parts.empty()) fail(Code::BadNode, "expected tensors to join, got an empty sequence");
  const bool fresh = c.flag("new_axis");
  const int rank = parts.front().rank();
  const int64_t axis = c.axis(c.integer("axis"), rank + (fresh ? 1 : 0));
  for (Value& v : parts) {
    if (v.rank() != rank)
      fail(Code::BadNode, fmt::format("expected tensors with as many axes, got {}", v.type().text()));
    if (fresh) v = unsqueezed(c.b, v, axis);
  }
  c.out(parts.size() == 1 ? parts.front() : c.b.concat(parts, {.axis = axis}));
}

void optional(OpImport& c) { c.out(0, c.operand(0)); }

void getElement(OpImport& c) {
  if (!c.has(0)) fail(Code::BadNode, "expected an optional that holds an element, got an empty one");
  c.out(0, c.operand(0));
}

void hasElement(OpImport& c) { c.out(c.b.scalar(ElemKind::Bool, c.has(0) ? 1 : 0)); }

}  // namespace

std::span<const OpRow> sequenceRows() {
  static constexpr OpRow rows[] = {
      {"SequenceConstruct", construct},
      {"SequenceEmpty", empty},
      {"SequenceAt", at},
      {"SequenceInsert", insert},
      {"SequenceErase", erase},
      {"SequenceLength", length},
      {"SplitToSequence", splitToSequence},
      {"ConcatFromSequence", concatFromSequence},
      {"Optional", optional},
      {"OptionalGetElement", getElement},
      {"OptionalHasElement", hasElement},
  };
  return rows;
}

}  // namespace aglow::onnx
