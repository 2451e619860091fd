// Operators on tensors with channels in blocks. Only their bytes have blocks, which the graph does not show: here they
// are plain tensors of the same shape, with channels filled up to whole blocks. Filters are put back in order.
#include <fmt/format.h>

#include "import/onnx/nchwc.h"
#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kOpset = 13;

Value imageOf(const OpImport& c, int input) {
  const Value x = c.in(input);
  if (x.rank() != 4)
    fail(Code::BadNode, fmt::format("expected [batch, channels, height, width], got {}", x.type().text()));
  return x;
}

void reorderInput(OpImport& c) {
  Value x = imageOf(c, 0);
  if (c.integer("channels_last", 0) != 0) x = channelsFirst(c.b, x);
  const int64_t block = c.channelBlock(), extra = (block - x.dim(1) % block) % block;
  c.out(paddedOrCropped(c.b, x, {0, 0, 0, 0}, {0, extra, 0, 0}, c.b.scalarLike(x, 0)));
}

void reorderOutput(OpImport& c) {
  const Value x = imageOf(c, 0);
  const int64_t channels = c.integer("channels", 0);
  if (channels < 1 || channels > x.dim(1))
    fail(Code::BadNode, fmt::format("expected 'channels' from 1 to {}, got {}", x.dim(1), channels));
  const Value y = sliced(c.b, x, 1, 0, channels);
  c.out(c.integer("channels_last", 0) != 0 ? channelsLast(c.b, y) : y);
}

// From blocks of output channels, and of input channels where there are enough for one, to [out, in, height, width].
Value plainFilter(OpImport& c, Value w) {
  const int64_t block = c.channelBlock();
  const bool both = w.dim(1) >= block;
  if (w.dim(0) % block != 0 || (both && w.dim(1) % block != 0))
    fail(Code::BadNode, fmt::format("expected a filter with blocks of {} channels, got {}", block, w.type().text()));
  const int64_t out = w.dim(0) / block, in = w.dim(1), height = w.dim(2), width = w.dim(3);
  const Value blocks = both ? c.b.reshaped(w, {out, in / block, height, width, block, block})
                            : c.b.reshaped(w, {out, in, height, width, block});
  const Value turned =
      c.b.transposed(blocks, both ? std::vector<int64_t>{0, 5, 1, 4, 2, 3} : std::vector<int64_t>{0, 4, 1, 2, 3});
  return c.b.reshaped(turned, w.shape().dims());
}

void conv(OpImport& c) {
  const Value x = imageOf(c, 0);
  Value y = standardValue(c, "Conv", kOpset, {x, plainFilter(c, imageOf(c, 1)), c.optional(2)});
  if (c.has(3)) y = c.b.add(y, c.in(3));
  c.out(activated(c, y));
}

// The standard operator of the same name.
void pool(OpImport& c) { c.out(standardValue(c, c.node.opType, kOpset, {imageOf(c, 0)})); }

// Whole factors for each axis.
void upsample(OpImport& c) {
  const Value x = imageOf(c, 0);
  const std::vector<int64_t> scales = c.ints("scales");
  if (scales.size() != 4) fail(Code::BadNode, fmt::format("expected 4 'scales', got {}", scales.size()));
  Node node = standardNode(c, "Resize");
  std::erase_if(node.attributes, [](const Attribute& attribute) { return attribute.name == "scales"; });
  const auto set = [&](std::string_view name, const std::string& word) {
    std::erase_if(node.attributes, [&](const Attribute& attribute) { return attribute.name == name; });
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.type = AttributeType::String;
    attribute.s = word;
  };
  set("nearest_mode", "floor");
  set("coordinate_transformation_mode", c.word("coordinate_transformation_mode", "asymmetric"));
  const Tensor factors = Tensor::of(Type(ElemKind::Float32, Shape{4}), scales);
  c.out(0, c.standard(node, kOpset, {Imported::of(x), Imported::none(), Imported::of(c.b.constant(factors))}).front());
}

constexpr OpRow row(std::string_view name, Handler* handler) {
  return {.name = name, .handler = handler, .domain = kNchwc};
}

}  // namespace

std::span<const OpRow> nchwcRows() {
  static constexpr OpRow rows[] = {
      row("ReorderInput", reorderInput),
      row("ReorderOutput", reorderOutput),
      row("Conv", conv),
      row("MaxPool", pool),
      row("AveragePool", pool),
      row("GlobalMaxPool", pool),
      row("GlobalAveragePool", pool),
      row("Upsample", upsample),
  };
  return rows;
}

}  // namespace aglow::onnx
