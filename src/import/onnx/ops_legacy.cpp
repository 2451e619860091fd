// Operators as opsets 1 to 6 have them: operands broadcast only where a node asks for it, and from an axis that it
// names; attributes have other names or types. Most become a node as later opsets have it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// The second operand, with axes of extent 1 after it so that it begins at `axis` of the first one.
Value aligned(OpImport& c, Value x, Value y) {
  if (!c.flag("broadcast")) {
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

template <Op op>
void binary(OpImport& c) {
  const Value x = c.in(0), y = aligned(c, x, c.in(1));
  c.out(c.b.make({x, y}, Attrs(opDef(op)))->result());
}

void greater(OpImport& c) {
  const Value x = c.in(0);
  c.out(c.b.less(aligned(c, x, c.in(1)), x));
}

void pRelu(OpImport& c) {
  const Value x = c.in(0), slope = c.in(1);
  const bool shared = slope.type().elements() == 1;
  if (!shared && (x.rank() < 2 || slope.shape() != Shape{x.dim(1)}))
    fail(Code::BadNode,
         fmt::format("expected one slope, or one a channel of {}, got {}", x.type().text(), slope.type().text()));
  c.out(c.b.pRelu(x, shared ? c.b.reshaped(slope, {}) : alongAxis(c.b, slope, 1, x.rank())));
}

Node withAttribute(const OpImport& c, Attribute attribute) {
  Node node = c.node;
  std::erase_if(node.attributes, [&](const Attribute& a) { return a.name == attribute.name; });
  node.attributes.push_back(std::move(attribute));
  return node;
}

void as(OpImport& c, const Node& node, int64_t opset) { c.out(0, c.standard(node, opset, {c.operand(0)}).front()); }

// Element types by name instead of by number.
void cast(OpImport& c) {
  static constexpr std::string_view kNames[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                                "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                                "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
  std::string name = c.word("to");
  std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) fail(Code::BadNode, fmt::format("expected an element type in 'to', got '{}'", name));
  as(c, withAttribute(c, intAttribute("to", found - std::begin(kNames))), 6);
}

void concat(OpImport& c) {
  std::vector<Imported> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.operand(i));
  const Node node = withAttribute(c, intAttribute("axis", c.integer("axis", 1)));
  c.out(0, c.standard(node, 4, std::move(operands)).front());
}

void reshape(OpImport& c) {
  c.out(0, c.standard(c.node, 5, {c.operand(0), Imported::of(c.b.ints(c.ints("shape")))}).front());
}

void pad(OpImport& c) {
  Attribute pads;
  pads.name = "pads";
  pads.type = AttributeType::Ints;
  pads.ints = c.ints("paddings");
  as(c, withAttribute(c, std::move(pads)), 2);
}

// The order of a norm as a float.
void lpPool(OpImport& c) {
  const double p = c.real("p", 2);
  if (p != std::floor(p) || p < 1 || p > 1000)
    fail(Code::UnsupportedFeature, fmt::format("norms of order {} are not supported; whole numbers are", p));
  as(c, withAttribute(c, intAttribute("p", static_cast<int64_t>(p))), 2);
}

void selu(OpImport& c) {
  c.out(c.b.selu(c.in(0), {.alpha = c.real("alpha", 1.6732f), .gamma = c.real("gamma", 1.0507f)}));
}

// A number of repeats along one axis.
void tile(OpImport& c) {
  const Value x = c.in(0);
  std::vector<int64_t> repeats(static_cast<size_t>(x.rank()), 1);
  repeats[static_cast<size_t>(c.axis(c.constantInt(2), x.rank()))] = c.constantInt(1);
  c.out(0, c.standard(c.node, 6, {c.operand(0), Imported::of(c.b.ints(repeats))}).front());
}

void upsample(OpImport& c) {
  Attribute scales;
  scales.name = "scales";
  scales.type = AttributeType::Floats;
  scales.floats = {1, 1, static_cast<float>(c.real("height_scale")), static_cast<float>(c.real("width_scale"))};
  as(c, withAttribute(c, std::move(scales)), 7);
}

// ---------------------------------------------------------------- operators that the standard gave up

void affine(OpImport& c) {
  const Value x = c.in(0);
  c.out(c.b.add(c.b.mul(x, c.b.scalarLike(x, c.real("alpha", 1))), c.b.scalarLike(x, c.real("beta", 0))));
}

void scaledTanh(OpImport& c) {
  const Value x = c.in(0);
  const Value inner = c.b.tanh(c.b.mul(x, c.b.scalarLike(x, c.real("beta", 1))));
  c.out(c.b.mul(inner, c.b.scalarLike(x, c.real("alpha", 1))));
}

void parametricSoftplus(OpImport& c) {
  const Value x = c.in(0);
  const Value inner = c.b.softplus(c.b.mul(x, c.b.scalarLike(x, c.real("beta", 1))));
  c.out(c.b.mul(inner, c.b.scalarLike(x, c.real("alpha", 1))));
}

void scale(OpImport& c) { c.out(c.b.mul(c.in(0), c.b.scalarLike(c.in(0), c.real("scale", 1)))); }

void imageScaler(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<double> bias = c.reals("bias");
  if (x.rank() != 4 || static_cast<int64_t>(bias.size()) != x.dim(1))
    fail(Code::BadNode, fmt::format("expected an image and a 'bias' for each channel, got {} and {} entries",
                                    x.type().text(), bias.size()));
  const Value offsets = c.b.constant(Tensor::of(Type(x.kind(), Shape{x.dim(1), 1, 1}), bias));
  c.out(c.b.add(c.b.mul(x, c.b.scalarLike(x, c.real("scale", 1))), offsets));
}

// Without a border at the left, top, right and bottom; or as many rows and columns as are asked for, from its left top
// corner on.
void crop(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> border = c.ints("border"), size = c.ints("scale");
  if (x.rank() != 4 || border.size() != 4 || (!size.empty() && size.size() != 2))
    fail(Code::BadNode,
         fmt::format("expected an image, 4 entries in 'border' and none or 2 in 'scale', got {}, {} and {}",
                     x.type().text(), listText(border), listText(size)));
  const auto along = [&](Value v, int axis, int64_t from, int64_t to) {
    const int64_t extent = x.dim(axis);
    if (from < 0 || to < from || to > extent)
      fail(Code::BadNode,
           fmt::format("expected a part of {} along axis {}, got {} to {}", x.type().text(), axis, from, to));
    return sliced(c.b, v, axis, from, to - from);
  };
  const int64_t bottom = size.empty() ? x.dim(2) - border[3] : border[1] + size[0];
  const int64_t right = size.empty() ? x.dim(3) - border[2] : border[0] + size[1];
  c.out(along(along(x, 2, border[1], bottom), 3, border[0], right));
}

}  // namespace

std::span<const OpRow> legacyRows() {
  static constexpr OpRow rows[] = {
      {"Add", binary<Op::Add>, 1, 6},
      {"Sub", binary<Op::Sub>, 1, 6},
      {"Mul", binary<Op::Mul>, 1, 6},
      {"Div", binary<Op::Div>, 1, 6},
      {"Pow", binary<Op::Pow>, 1, 6},
      {"And", binary<Op::And>, 1, 6},
      {"Or", binary<Op::Or>, 1, 6},
      {"Xor", binary<Op::Xor>, 1, 6},
      {"Equal", binary<Op::Equal>, 1, 6},
      {"Greater", greater, 1, 6},
      {"Less", binary<Op::Less>, 1, 6},
      {"PRelu", pRelu, 1, 6},
      {"Cast", cast, 1, 5},
      {"Concat", concat, 1, 3},
      {"Reshape", reshape, 1, 4},
      {"Pad", pad, 1, 1},
      {"LpPool", lpPool, 1, 1},
      {"GlobalLpPool", lpPool, 1, 1},
      {"Selu", selu, 1, 5},
      {"Tile", tile, 1, 5},
      {"Upsample", upsample, 1, 6},
      {"Affine", affine, 1, 9},
      {"ScaledTanh", scaledTanh, 1, 9},
      {"ParametricSoftplus", parametricSoftplus, 1, 9},
      {"Scale", scale, 1, 9},
      {"ImageScaler", imageScaler, 1, 9},
      {"Crop", crop, 1, 9},
  };
  return rows;
}

}  // namespace aglow::onnx
