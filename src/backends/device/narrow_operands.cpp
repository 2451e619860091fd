// The pass that lets products and convolutions of i32 read the bytes that their operands are made of: kernels widen
// them while they load, so that what is four times as large is never stored. Sums are those of i32, to the bit.
#include "backends/device/narrow_operands.h"

#include <algorithm>

#include "backends/cpu/layout/bytes.h"
#include "graph/builder.h"

namespace aglow::device {

namespace {

constexpr int64_t kMostOffset = 255;  // of bytes, to either side

// An operand as bytes, and the one of them that is zero. What is computed are the bytes before they are moved.
struct Bytes {
  Value from;    // computed; or:
  Tensor known;  // i32 to be made narrow
  int64_t offset = 0;
  ElemKind kind = ElemKind::UInt8;
};

// A constant whose elements lie close together.
std::optional<Bytes> knownBytes(Value v) {
  const Constant* constant = asConstant(v);
  if (constant == nullptr || v.kind() != ElemKind::Int32 || v.type().elements() == 0) return std::nullopt;
  const Tensor& tensor = constant->tensor();
  if (fitsSignedBytes(tensor)) return Bytes{.known = tensor, .kind = ElemKind::Int8};
  const auto* values = tensor.ref().as<const int32_t>();
  const auto [least, most] = std::minmax_element(values, values + tensor.type().elements());
  if (int64_t{*most} - *least > UINT8_MAX || *least < -kMostOffset || *least > kMostOffset) return std::nullopt;
  return Bytes{.known = tensor, .offset = -int64_t{*least}};
}

std::optional<Bytes> bytesOf(Value v) {
  if (std::optional<Bytes> known = knownBytes(v)) return known;
  const std::optional<ShiftedBytes> bytes = shiftedBytes(unmoved(v));
  const std::optional<int64_t> shift = bytes ? bytes->known() : std::nullopt;
  if (!shift || *shift < -kMostOffset || *shift > kMostOffset) return std::nullopt;
  return Bytes{.from = bytes->bytes, .offset = -*shift};
}

// The operand where it was.
Value narrowed(Builder& b, Value operand, const Bytes& bytes) {
  if (bytes.from) return movedAs(b, operand, bytes.from);
  std::vector<int64_t> values = bytes.known.toInts();
  for (int64_t& value : values) value += bytes.offset;
  return b.constant(Tensor::fromInts(bytes.known.type().withKind(bytes.kind), values));
}

// The product with its columns side by side, where they lie so before they are transposed.
Value product(Builder& b, const Node& node, const Bytes& left, const Bytes& right) {
  Value columns = narrowed(b, node.input(1), right);
  bool transposed = false;
  if (!columns.node->isStorage() && columns.node->op() == Op::Transpose) {
    const Value from = columns.node->input(0);
    std::vector<int64_t> perm = columns.node->attrs().ints("perm");
    std::swap(perm[perm.size() - 2], perm.back());
    transposed = std::is_sorted(perm.begin(), perm.end());
    if (transposed) columns = from;
  }
  return b.byteMatMul(narrowed(b, node.input(0), left), columns,
                      {.aOffset = left.offset, .bOffset = right.offset, .transposed = transposed});
}

Value convolution(Builder& b, const Node& node, const Bytes& x, const Bytes& filter) {
  const Attrs& attrs = node.attrs();
  return b.byteConv(narrowed(b, node.input(0), x), narrowed(b, node.input(1), filter),
                    node.inputCount() > 2 ? node.input(2) : Value{},
                    {.strides = attrs.ints("strides"),
                     .pads = attrs.ints("pads"),
                     .dilations = attrs.ints("dilations"),
                     .group = attrs.integer("group"),
                     .xOffset = x.offset,
                     .filterOffset = filter.offset});
}

Result<bool> narrowOperands(Function& function, PassContext& context) {
  std::vector<Node*> found;
  for (const auto& node : function.nodes())
    if ((node->op() == Op::MatMul || node->op() == Op::Conv) && !node->predicate() &&
        node->type().kind() == ElemKind::Int32 && bytesOf(node->input(0)) && bytesOf(node->input(1)))
      found.push_back(node.get());
  for (Node* node : found) {
    Builder b(function);
    b.before(node).named(node->name());
    AGLOW_OK(building([&] {
      const Bytes left = *bytesOf(node->input(0)), right = *bytesOf(node->input(1));
      const bool convolves = node->op() == Op::Conv;
      replaceAllUses(node->result(), convolves ? convolution(b, *node, left, right) : product(b, *node, left, right));
      return true;
    }));
    function.erase(node);
  }
  context.count("narrow-operands", std::ssize(found));
  return !found.empty();
}

}  // namespace

Pass narrowOperandsPass() {
  return {.name = "narrow-operands",
          .doc = "Products and convolutions of bytes read them as they are.",
          .run = narrowOperands};
}

}  // namespace aglow::device
