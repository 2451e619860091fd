// Attributes that are flags are 0 or 1, and attributes that are words are those that the standard names; all others are
// refused, with the attribute's name.
#include <gmock/gmock.h>

#include "onnx_node.h"

namespace aglow {

namespace {

using onnx_writer::Attribute;
using ::testing::HasSubstr;
using testing_support::floats;
using testing_support::integers;
using testing_support::OnnxNode;
using testing_support::runNode;
using Ints = std::vector<int64_t>;

Tensor zeros(const Ints& dims) { return Tensor(Type(ElemKind::Float32, Shape(dims))); }
Tensor ones(const Ints& dims) {
  const Shape shape(dims);
  return floats(dims, std::vector<double>(static_cast<size_t>(shape.elements()), 1));
}

struct Flags {
  OnnxNode node;
  std::vector<std::string> names;
};

const Tensor kImage = zeros({1, 1, 4, 4}), kMatrix = ones({2, 2});

std::vector<Flags> flags() {
  const Attribute kernel("kernel_shape", Ints{2, 2});
  return {
      {{"Mod", {kMatrix, kMatrix}}, {"fmod"}},
      {{"Cast", {kMatrix}, {Attribute("to", 17)}}, {"saturate"}},
      {{"IsInf", {kMatrix}}, {"detect_negative", "detect_positive"}},
      {{"CumSum", {kMatrix, integers({}, {0})}}, {"exclusive", "reverse"}},
      {{"Gemm", {kMatrix, kMatrix}}, {"transA", "transB"}},
      {{"ReduceMax", {kMatrix}}, {"keepdims", "noop_with_empty_axes"}},
      {{"ReduceMax", {kMatrix, integers({1}, {0})}}, {"noop_with_empty_axes"}},
      {{"ArgMax", {kMatrix}}, {"keepdims", "select_last_index"}},
      {{"TopK", {kMatrix, integers({1}, {1})}, {}, 21, 2}, {"largest", "sorted"}},
      {{"MaxPool", {kImage}, {kernel}}, {"ceil_mode", "storage_order"}},
      {{"MaxPool", {kImage}, {kernel}, 21, 2}, {"storage_order"}},
      {{"AveragePool", {kImage}, {kernel}}, {"ceil_mode", "count_include_pad"}},
      {{"LpPool", {kImage}, {kernel}}, {"ceil_mode"}},
      {{"Trilu", {kMatrix}}, {"upper"}},
      {{"Reshape", {kMatrix, integers({1}, {4})}}, {"allowzero"}},
      {{"Resize", {kImage, Tensor(), floats({4}, {1, 1, 2, 2})}, {Attribute("mode", "linear")}},
       {"antialias", "exclude_outside"}},
      {{"NonMaxSuppression", {ones({1, 1, 4}), ones({1, 1, 1})}}, {"center_point_box"}},
      {{"GridSample", {kImage, zeros({1, 2, 2, 2})}}, {"align_corners"}},
      {{"AffineGrid", {zeros({1, 2, 3}), integers({4}, {1, 1, 2, 2})}}, {"align_corners"}},
      {{"DFT", {zeros({1, 4, 1})}}, {"onesided"}},
      {{"DFT", {zeros({1, 4, 2})}}, {"inverse"}},
      {{"STFT", {zeros({1, 8, 1}), integers({}, {4}), Tensor(), integers({}, {4})}}, {"onesided"}},
      {{"HannWindow", {integers({}, {4})}}, {"periodic"}},
      {{"QuantizeLinear", {kMatrix, floats({}, {1})}}, {"saturate"}},
      {{"Unique", {kMatrix}}, {"sorted"}},
      {{"GRU", {zeros({1, 1, 1}), zeros({1, 3, 1}), zeros({1, 3, 1})}}, {"layout", "linear_before_reset"}},
      {{"LSTM", {zeros({1, 1, 1}), zeros({1, 4, 1}), zeros({1, 4, 1})}}, {"layout", "input_forget"}},
      {{"BatchNormalization", {kImage, ones({1}), ones({1}), ones({1}), ones({1})}}, {"training_mode"}},
      {{"BatchNormalization", {kImage, ones({1}), ones({1}), ones({1}), ones({1})}, {}, 8}, {"spatial"}},
      {{"Add", {kMatrix, kMatrix}, {}, 6}, {"broadcast"}},
      {{"Attention", {kImage, kImage, kImage}, {}, 23}, {"is_causal"}},
      {{"RotaryEmbedding", {kImage, zeros({1, 4, 2}), zeros({1, 4, 2})}, {}, 23}, {"interleaved"}},
  };
}

TEST(Flags, AreZeroOrOne) {
  for (const Flags& row : flags())
    for (const std::string& name : row.names)
      for (const int64_t value : {0, 1, 2, -1}) {
        OnnxNode node = row.node;
        node.attributes.emplace_back(name, value);
        const auto results = runNode(node);
        ASSERT_EQ(results.ok(), value == 0 || value == 1)
            << node.op << " " << name << " = " << value << ": " << (results.ok() ? "" : results.error().text());
        if (results.ok()) continue;
        EXPECT_EQ(results.error().code, Code::BadNode) << results.error().text();
        EXPECT_THAT(results.error().message, HasSubstr("'" + name + "'"));
      }
}

struct Words {
  OnnxNode node;
  std::string name, good;
};

TEST(Words, AreThoseOfTheStandard) {
  const Tensor scales = floats({4}, {1, 1, 2, 2});
  const OnnxNode resize{"Resize", {kImage, Tensor(), scales}};
  const OnnxNode regions{"RoiAlign", {kImage, zeros({1, 4}), integers({1}, {0})}};
  const OnnxNode scatter{"ScatterElements", {kMatrix, integers({1, 1}, {0}), ones({1, 1})}};
  const OnnxNode lstm{"LSTM", {zeros({1, 1, 1}), zeros({1, 4, 1}), zeros({1, 4, 1})}};
  const std::vector<Words> rows = {
      {resize, "mode", "cubic"},
      {resize, "coordinate_transformation_mode", "asymmetric"},
      {resize, "nearest_mode", "ceil"},
      {resize, "keep_aspect_ratio_policy", "stretch"},
      {regions, "mode", "max"},
      {regions, "coordinate_transformation_mode", "output_half_pixel"},
      {scatter, "reduction", "add"},
      {lstm, "direction", "reverse"},
      {{"Conv", {kImage, zeros({1, 1, 2, 2})}}, "auto_pad", "SAME_UPPER"},
      {{"DepthToSpace", {zeros({1, 4, 1, 1})}, {Attribute("blocksize", 2)}}, "mode", "CRD"},
      {{"Gelu", {kMatrix}}, "approximate", "tanh"},
      {{"GridSample", {kImage, zeros({1, 2, 2, 2})}}, "mode", "cubic"},
      {{"GridSample", {kImage, zeros({1, 2, 2, 2})}}, "padding_mode", "border"},
      {{"Pad", {kMatrix, integers({4}, {0, 0, 0, 0})}}, "mode", "wrap"},
      {{"Cast", {kMatrix}, {Attribute("to", 24)}, 25}, "round_mode", "down"},
      {{"SoftmaxCrossEntropyLoss", {kMatrix, integers({2}, {0, 1})}}, "reduction", "sum"},
  };
  for (const Words& row : rows)
    for (const std::string& word : {row.good, std::string("sideways"), std::string()}) {
      OnnxNode node = row.node;
      node.attributes.emplace_back(row.name, word);
      const auto results = runNode(node);
      const bool empty = word.empty() && row.name == "auto_pad";  // as if it were not there
      ASSERT_EQ(results.ok(), word == row.good || empty)
          << node.op << " " << row.name << " = '" << word << "': " << (results.ok() ? "" : results.error().text());
      if (!results.ok()) EXPECT_EQ(results.error().code, Code::BadNode) << results.error().text();
    }
}

TEST(Words, ElementTypesExist) {
  for (const int64_t type : {int64_t{0}, int64_t{-1}, int64_t{99}, int64_t{1} << 40}) {
    const auto results = runNode({"Cast", {kMatrix}, {Attribute("to", type)}});
    ASSERT_FALSE(results.ok()) << type;
    EXPECT_EQ(results.error().code, Code::BadNode) << results.error().text();
  }
  const auto complex = runNode({"Cast", {kMatrix}, {Attribute("to", onnx_writer::kComplex64)}});
  ASSERT_FALSE(complex.ok());
  EXPECT_EQ(complex.error().code, Code::UnsupportedFeature) << complex.error().text();
}

}  // namespace

}  // namespace aglow
