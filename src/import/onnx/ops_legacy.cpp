// Operators as opset 6 has them: operands broadcast only where a node asks for it, and from an axis that it names.
#include <fmt/format.h>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The second operand, with axes of extent 1 behind it so that it begins at `axis` of the first one.
Value aligned(OpImport& c, Value x, Value y) {
  if (c.integer("broadcast", 0) == 0) {
    if (x.shape() != y.shape())
      fail(Code::BadNode, fmt::format("expected operands of one shape unless 'broadcast' is 1, got {} and {}",
                                      x.type().text(), y.type().text()));
    return y;
  }
  const int64_t axis = c.hasAttr("axis") ? c.axis(c.integer("axis"), x.rank()) : x.rank() - y.rank();
  if (axis < 0 || axis + y.rank() > x.rank())
    fail(Code::BadNode, fmt::format("expected a second operand that lies in the axes of {} from {} on, got {}",
                                    x.type().text(), axis, y.type().text()));
  std::vector<int64_t> dims = y.shape().dims();
  dims.resize(static_cast<size_t>(x.rank() - axis), 1);
  return c.b.reshaped(y, dims);
}

void binary(OpImport& c) {
  Value x = c.in(0), y = aligned(c, x, c.in(1));
  std::string_view record = c.node.opType;
  if (record == "Greater") {
    std::swap(x, y);
    record = "Less";
  }
  c.out(c.b.make({x, y}, Attrs(opDef(*findOp(record))))->result());
}

void pRelu(OpImport& c) {
  const Value x = c.in(0), slope = c.in(1);
  const bool shared = slope.type().elements() == 1;
  if (!shared && (x.rank() < 2 || slope.shape() != Shape{x.dim(1)}))
    fail(Code::BadNode,
         fmt::format("expected one slope, or one a channel of {}, got {}", x.type().text(), slope.type().text()));
  c.out(c.b.pRelu(x, shared ? c.b.reshaped(slope, {}) : alongAxis(c.b, slope, 1, x.rank())));
}

}  // namespace

std::span<const OpRow> legacyRows() {
  static constexpr OpRow rows[] = {
      {"Add", binary, 1, 6},   {"Sub", binary, 1, 6},     {"Mul", binary, 1, 6},  {"Div", binary, 1, 6},
      {"Pow", binary, 1, 6},   {"And", binary, 1, 6},     {"Or", binary, 1, 6},   {"Xor", binary, 1, 6},
      {"Equal", binary, 1, 6}, {"Greater", binary, 1, 6}, {"Less", binary, 1, 6}, {"PRelu", pRelu, 1, 6},
  };
  return rows;
}

}  // namespace aglow::onnx
