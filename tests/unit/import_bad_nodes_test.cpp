// Nodes that break their operators' rules are refused as such: never an internal fault, never a crash.
#include <gtest/gtest.h>

#include "onnx_node.h"

namespace aglow {

namespace {

using onnx_writer::Attribute;
using testing_support::floats;
using testing_support::integers;
using testing_support::OnnxNode;
using testing_support::runNode;
using Ints = std::vector<int64_t>;

constexpr int64_t kHuge = INT64_MAX;

Tensor zeros(const Ints& dims) { return Tensor(Type(ElemKind::Float32, Shape(dims))); }

void expectRefused(const OnnxNode& node, Code code = Code::BadNode) {
  const auto results = runNode(node);
  ASSERT_FALSE(results.ok()) << node.op;
  EXPECT_EQ(results.error().code, code) << results.error().text();
}

TEST(BadNodes, ShapesThatDoNotFit) {
  const Tensor x = zeros({2, 3});
  expectRefused({"Reshape", {x, integers({2}, {-1, -1})}});
  expectRefused({"Reshape", {x, integers({2}, {4, -1})}});
  expectRefused({"Reshape", {x, integers({2}, {kHuge, kHuge})}});
  expectRefused({"Reshape", {x, integers({3}, {1, 1, 0})}});
  expectRefused({"Flatten", {x}, {Attribute("axis", 3)}});
  expectRefused({"Squeeze", {x, integers({1}, {0})}});
  expectRefused({"Unsqueeze", {x, integers({2}, {0, 0})}});
  expectRefused({"Transpose", {x}, {Attribute("perm", Ints{0, 0})}});
  expectRefused({"Expand", {x, integers({1}, {4})}});
  expectRefused({"Expand", {x, integers({1}, {-1})}});
  expectRefused({"Tile", {x, integers({1}, {2})}});
  expectRefused({"Tile", {x, integers({2}, {-1, 1})}});
  expectRefused({"Tile", {x, integers({2}, {kHuge, kHuge})}});
  expectRefused({"Concat", {x, zeros({3, 3, 3})}, {Attribute("axis", 0)}});
  expectRefused({"Concat", {x, x}});
  expectRefused({"Split", {x, integers({2}, {1, 3})}, {Attribute("axis", 1)}, 18, 2});
  expectRefused({"Split", {x}, {Attribute("axis", 1)}, 13, 2});
  expectRefused({"Slice", {x, integers({1}, {0}), integers({1}, {1}), integers({1}, {0}), integers({1}, {0})}});
  expectRefused({"Slice", {x, integers({2}, {0, 0}), integers({1}, {1})}});
  expectRefused({"DepthToSpace", {zeros({1, 4, 1, 1})}, {Attribute("blocksize", 3)}});
  expectRefused({"SpaceToDepth", {zeros({1, 1, 2, 2})}, {Attribute("blocksize", 0)}});
}

TEST(BadNodes, PadsThatLeaveNothing) {
  const Tensor x = zeros({2});
  expectRefused({"Pad", {x, integers({2}, {-2, -1})}});
  expectRefused({"Pad", {x, integers({2}, {kHuge, kHuge})}});
  expectRefused({"Pad", {x, integers({2}, {kHuge, kHuge})}, {Attribute("mode", "edge")}});
  expectRefused({"Pad", {x, integers({1}, {1})}});
  expectRefused({"Pad", {x, integers({2}, {1, 1})}, {Attribute("mode", "mirror")}});
  expectRefused({"Pad", {zeros({0}), integers({2}, {1, 1})}, {Attribute("mode", "edge")}});
}

TEST(BadNodes, WindowsThatDoNotFit) {
  const Tensor x = zeros({1, 1, 4, 4}), filter = zeros({1, 1, 3, 3});
  expectRefused({"Conv", {x, filter}, {Attribute("strides", Ints{0, 1})}});
  expectRefused({"Conv", {x, filter}, {Attribute("dilations", Ints{1})}});
  expectRefused({"Conv", {x, filter}, {Attribute("dilations", Ints{kHuge, 1})}});
  expectRefused({"Conv", {x, filter}, {Attribute("pads", Ints{0, 0, 0, -1})}});
  expectRefused({"Conv", {x, filter}, {Attribute("group", 0)}});
  expectRefused({"Conv", {x, filter}, {Attribute("kernel_shape", Ints{2, 2})}});
  expectRefused({"Conv", {x, zeros({1, 1, 5, 5})}});
  expectRefused({"Conv", {zeros({1, 4}), filter}});
  expectRefused({"Conv", {x, filter}, {Attribute("auto_pad", "SAME")}});
  expectRefused({"ConvTranspose", {x, filter}, {Attribute("output_shape", Ints{-1, 3})}});
  expectRefused({"ConvTranspose", {x, filter}, {Attribute("output_padding", Ints{0})}});
  expectRefused({"MaxPool", {x}});
  expectRefused({"MaxPool", {x}, {Attribute("kernel_shape", Ints{5, 5})}});
  expectRefused({"MaxPool", {x}, {Attribute("kernel_shape", Ints{kHuge, 1}), Attribute("ceil_mode", 1)}});
  expectRefused({"LpPool", {x}, {Attribute("kernel_shape", Ints{2, 2}), Attribute("p", 0)}});
  expectRefused({"MaxUnpool", {x, integers({1}, {0})}, {Attribute("kernel_shape", Ints{2, 2})}});
}

TEST(BadNodes, AxesAndKindsOutOfRange) {
  const Tensor x = zeros({2, 3});
  expectRefused({"ReduceSum", {x, integers({1}, {2})}});
  expectRefused({"ReduceSum", {x, integers({2}, {0, -2})}});
  expectRefused({"Softmax", {x}, {Attribute("axis", -3)}});
  expectRefused({"ArgMax", {zeros({0, 3})}, {Attribute("axis", 0)}});
  expectRefused({"TopK", {x, integers({1}, {4})}});
  expectRefused({"TopK", {x, integers({1}, {-1})}});
  expectRefused({"OneHot", {x, integers({1}, {0}), zeros({2})}});
  expectRefused({"OneHot", {x, integers({1}, {3}), zeros({3})}});
  expectRefused({"Gather", {x, zeros({1})}});
  expectRefused({"BitShift", {x, x}, {Attribute("direction", "LEFT")}});
  expectRefused({"BitCast", {x}, {Attribute("to", 7)}, 26});
  expectRefused({"Clip", {x, zeros({2})}});
  expectRefused({"PRelu", {zeros({3}), zeros({2, 3})}});
  expectRefused({"MatMul", {x, x}});
  expectRefused({"MatMul", {x, zeros({})}});
  expectRefused({"Gemm", {x, zeros({3, 2}), zeros({3})}});
  expectRefused({"Det", {x}});
  expectRefused({"Trilu", {zeros({3})}});
  expectRefused({"EyeLike", {zeros({3})}});
  expectRefused({"Range", {integers({}, {0}), integers({}, {1}), integers({}, {0})}});
  expectRefused({"Range", {integers({}, {0}), integers({}, {kHuge}), integers({}, {1})}}, Code::TooLarge);
  expectRefused({"GroupNormalization", {zeros({1, 3, 2}), zeros({3}), zeros({3})}, {Attribute("num_groups", 2)}});
  expectRefused({"Dropout", {x, zeros({}), Tensor::of(Type(ElemKind::Bool, Shape{2}), std::vector{1, 1})}, {}, 13});
}

TEST(BadNodes, Equations) {
  const Tensor x = zeros({2, 3});
  for (const char* equation :
       {"ijk", "i", "ij,ij", "ii", "i1", "ij->k", "ij->ii", "..ij", "i...j...", "ij->i->j", "ij.", ""})
    expectRefused({"Einsum", {x}, {Attribute("equation", equation)}});
  expectRefused({"Einsum", {x, x}, {Attribute("equation", "ij,jk")}});
}

TEST(BadNodes, Scales) {
  const Tensor x = zeros({2, 3});
  // A file's own scales are known when it is imported; here they come with the values given.
  expectRefused({"QuantizeLinear", {x, zeros({2})}}, Code::BadQuantization);
  expectRefused({"QuantizeLinear", {x, floats({3}, {1, 1, 1}), Tensor(Type(ElemKind::UInt8, Shape{2}))}},
                Code::BadQuantization);
  expectRefused({"QuantizeLinear", {x, floats({2, 3}, {1, 1, 1, 1, 1, 1})}, {Attribute("block_size", -1)}},
                Code::BadQuantization);
}

}  // namespace

}  // namespace aglow
