// Recurrent, image, signal and tree operators that break their rules are refused as such.
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
using Words = std::vector<std::string>;

constexpr int64_t kHuge = INT64_MAX;

Tensor zeros(const Ints& dims) { return Tensor(Type(ElemKind::Float32, Shape(dims))); }

void expectRefused(const OnnxNode& node, Code code = Code::BadNode) {
  const auto results = runNode(node);
  ASSERT_FALSE(results.ok()) << node.op;
  EXPECT_EQ(results.error().code, code) << results.error().text();
}

TEST(BadLayers, Recurrent) {
  const Tensor x = zeros({2, 1, 3}), w = zeros({1, 4, 3}), r = zeros({1, 4, 1});
  expectRefused({"LSTM", {x, w}});
  expectRefused({"LSTM", {x, w, r}, {Attribute("hidden_size", 2)}});
  expectRefused({"LSTM", {x, w, r}, {Attribute("layout", 2)}});
  expectRefused({"LSTM", {x, w, r}, {Attribute("direction", "backward")}});
  expectRefused({"LSTM", {x, w, r}, {Attribute("activations", Words{"Tanh", "Tanh"})}});
  expectRefused({"LSTM", {x, w, r}, {Attribute("activations", Words{"Tanh", "Tanh", "Gelu"})}});
  expectRefused({"LSTM", {x, w, r, zeros({1, 4})}});
  expectRefused({"LSTM", {zeros({3}), w, r}, {Attribute("layout", 1)}});
  expectRefused({"GRU", {x, w, r}});
}

TEST(BadLayers, Resize) {
  const Tensor x = zeros({1, 1, 2, 2}), none, two = floats({4}, {1, 1, 2, 2}), sizes = integers({4}, {1, 1, 4, 4});
  expectRefused({"Resize", {x}});
  expectRefused({"Resize", {x, none, two, sizes}});
  expectRefused({"Resize", {x, none, floats({2}, {2, 2})}});
  expectRefused({"Resize", {x, none, floats({4}, {1, 1, -2, 2})}});
  expectRefused({"Resize", {x, none, floats({4}, {1, 1, 1e30, 2})}});
  expectRefused({"Resize", {x, none, none, integers({4}, {1, 1, 0, 4})}});
  expectRefused({"Resize", {x, none, none, integers({4}, {1, 1, kHuge, kHuge})}});
  expectRefused({"Resize", {x, none, two}, {Attribute("mode", "quintic")}});
  expectRefused({"Resize", {x, none, two}, {Attribute("antialias", 1)}});
  expectRefused({"Resize", {x, none, two}, {Attribute("coordinate_transformation_mode", "tf_crop_and_resize")}});
  expectRefused({"Resize", {x, none, none, integers({1}, {4})}, {Attribute("axes", Ints{4})}});
  expectRefused({"Resize", {x, none, none, integers({2}, {4, 4})}, {Attribute("axes", Ints{2, -2})}});
}

TEST(BadLayers, Attention) {
  const Tensor q = zeros({1, 2, 3, 4}), k = zeros({1, 2, 5, 4}), none;
  const auto attention = [](std::vector<Tensor> inputs, std::vector<Attribute> attributes = {}) {
    return OnnxNode{"Attention", std::move(inputs), std::move(attributes), 24};
  };
  expectRefused(attention({q, k, zeros({1, 2, 4, 4})}));
  expectRefused(attention({q, zeros({1, 3, 5, 4}), zeros({1, 3, 5, 4})}));
  expectRefused(attention({q, k, k, zeros({7, 7})}));
  expectRefused(attention({q, k, k, none, zeros({1, 2, 1, 4})}));
  expectRefused(attention({q, k, k, none, none, none, integers({2}, {1, 1})}));
  expectRefused(attention({q, k, k}, {Attribute("qk_matmul_output_mode", 4)}));
  expectRefused(attention({zeros({1, 3, 8}), zeros({1, 5, 8}), zeros({1, 5, 8})}));
  expectRefused(attention({zeros({1, 3, 8}), zeros({1, 5, 8}), zeros({1, 5, 8})},
                          {Attribute("q_num_heads", 3), Attribute("kv_num_heads", 1)}));
}

TEST(BadLayers, Images) {
  const Tensor x = zeros({1, 1, 4, 4});
  expectRefused({"GridSample", {x, zeros({1, 2, 2, 3})}, {}, 20});
  expectRefused({"GridSample", {x, zeros({2, 2, 2, 2})}, {}, 20});
  expectRefused({"GridSample", {x, zeros({1, 2, 2, 2})}, {Attribute("mode", "sinc")}, 20});
  expectRefused({"AffineGrid", {zeros({1, 2, 3}), integers({4}, {-1, 1, 2, 2})}, {}, 20});
  expectRefused({"AffineGrid", {zeros({1, 2, 3}), integers({4}, {1, 1, kHuge, 2})}, {}, 20}, Code::BadTensor);
  expectRefused({"RoiAlign", {x, zeros({1, 5}), integers({1}, {0})}});
  expectRefused({"RoiAlign", {x, zeros({1, 4}), integers({1}, {0})}, {Attribute("output_height", kHuge)}});
  expectRefused({"DeformConv", {x, zeros({1, 1, 3, 3}), zeros({1, 18, 3, 3})}, {}, 19});
  expectRefused({"DeformConv", {x, zeros({1, 1, 3, 3}), zeros({1, 18, 2, 2})}, {Attribute("offset_group", 2)}, 19});
  expectRefused({"Col2Im", {zeros({1, 4, 3}), integers({2}, {3, 3}), integers({2}, {2, 2})}, {}, 18});
  expectRefused({"Col2Im", {zeros({1, 4, 4}), integers({2}, {3, 3}), integers({2}, {2, 0})}, {}, 18});
  expectRefused({"NonMaxSuppression", {zeros({1, 3, 4}), zeros({1, 1, 2})}, {}, 11});
}

TEST(BadLayers, Signals) {
  const Tensor x = zeros({1, 4, 1});
  expectRefused({"DFT", {zeros({1, 4, 3})}, {}, 20});
  expectRefused({"DFT", {x, integers({}, {0})}, {}, 20});
  expectRefused({"DFT", {x, integers({}, {kHuge})}, {}, 20}, Code::TooLarge);
  expectRefused({"DFT", {x, Tensor(), integers({}, {2})}, {}, 20});
  expectRefused({"DFT", {zeros({1, 4, 2})}, {Attribute("onesided", 1)}, 20});
  expectRefused({"STFT", {x, integers({}, {0}), zeros({2})}, {}, 17});
  expectRefused({"STFT", {x, integers({}, {1}), zeros({5})}, {}, 17});
  expectRefused({"HannWindow", {integers({}, {-1})}, {}, 17});
  expectRefused({"MelWeightMatrix",
                 {integers({}, {4}), integers({}, {8}), integers({}, {0}), floats({}, {0}), floats({}, {1})},
                 {},
                 17});
}

TEST(BadLayers, Losses) {
  const Tensor scores = zeros({2, 3}), labels = integers({2}, {0, 1});
  expectRefused({"SoftmaxCrossEntropyLoss", {scores, integers({3}, {0, 1, 2})}});
  expectRefused({"SoftmaxCrossEntropyLoss", {scores, labels, zeros({2})}});
  expectRefused({"NegativeLogLikelihoodLoss", {scores, labels}, {Attribute("reduction", "median")}});
}

// A regressor whose only tree has two nodes before two leaves.
Result<std::vector<Tensor>> runTree(const Ints& onTrue, const Ints& onFalse, int64_t feature, int64_t target) {
  using namespace onnx_writer;  // NOLINT: the model is written in its words
  onnx_writer::Node node("TreeEnsembleRegressor", {"x"}, {"y"});
  node.domain("ai.onnx.ml").attribute("nodes_treeids", Ints{0, 0, 0, 0}).attribute("nodes_nodeids", Ints{0, 1, 2, 3});
  node.attribute("nodes_featureids", Ints{feature, 0, 0, 0}).attribute("nodes_values", std::vector<float>{0, 0, 0, 0});
  node.attribute("nodes_modes", Words{"BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF"});
  node.attribute("nodes_truenodeids", onTrue).attribute("nodes_falsenodeids", onFalse).attribute("n_targets", 1);
  node.attribute("target_treeids", Ints{0, 0}).attribute("target_nodeids", Ints{2, 3});
  node.attribute("target_ids", Ints{target, 0}).attribute("target_weights", std::vector<float>{1, 2});
  const std::string file =
      onnx_writer::Model(21)
          .opsetImport("ai.onnx.ml", 3)
          .graph(onnx_writer::Graph().input("x", kFloat, {1, 1}).node(node).output("y", kFloat, {1, 1}))
          .bytes();
  AGLOW_TRY(const onnx::Model model, onnx::parseModel(std::as_bytes(std::span(file)), nullptr));
  ReferenceEvaluator evaluator;
  auto imported = onnx::importModel(model, {.shapes = {}, .dims = {}, .given = {}, .evaluator = &evaluator});
  if (!imported.ok()) return imported.diagnostics().errors().front();
  return evaluateFunction(*imported->module->findFunction("main"), {{"x", floats({1, 1}, {-1})}});
}

TEST(BadLayers, Trees) {
  const auto good = runTree({1, 2, 0, 0}, {3, 3, 0, 0}, 0, 0);
  ASSERT_TRUE(good.ok()) << good.error().text();
  EXPECT_EQ(good->front().doubles(), std::vector<double>{1});
  const auto refused = [](const Ints& onTrue, const Ints& onFalse, int64_t feature, int64_t target) {
    const auto result = runTree(onTrue, onFalse, feature, target);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::BadNode) << result.error().text();
  };
  refused({1, 1, 0, 0}, {3, 2, 0, 0}, 0, 0);  // a circle
  refused({1, 9, 0, 0}, {3, 3, 0, 0}, 0, 0);
  refused({0, 2, 0, 0}, {0, 3, 0, 0}, 0, 0);
  refused({1, 2, 0, 0}, {3, 3, 0, 0}, 1, 0);
  refused({1, 2, 0, 0}, {3, 3, 0, 0}, 0, 1);
}

}  // namespace

}  // namespace aglow
