// Caffe2 nets as files: both forms, what tells them from ONNX, and what becomes of their blobs.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "import/caffe2/convert.h"
#include "import/caffe2/text.h"
#include "import/model_file.h"
#include "import/onnx/op_import.h"
#include "import/onnx/tensor_data.h"
#include "onnx_writer.h"

namespace aglow::caffe2 {

namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

onnx::Bytes bytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

Net netOf(const std::string& text) {
  auto net = parseNet({.bytes = bytesOf(text)});
  EXPECT_TRUE(net.ok()) << net.error().text();
  return net.ok() ? *std::move(net) : Net{};
}

onnx::Model modelOf(const std::string& predict, const std::string& init = {}) {
  auto model = toModel(netOf(predict), init.empty() ? std::nullopt : std::optional(netOf(init)));
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? *std::move(model) : onnx::Model{};
}

std::vector<std::string> namesOf(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

std::string refusal(std::string_view text) {
  const auto net = parseNetText(text);
  return net.ok() ? "" : net.error().message;
}

TEST(Caffe2Text, ReadsEveryFormOfAValue) {
  const Net net = netOf(
      "name: 'a' \"b\"  # two strings side by side\n"
      "op { type: \"T\" input: \"x\" arg { name: \"f\" f: -1.5e1f } arg < name: \"i\" i: 0x10; > "
      "arg: { name: \"s\" s: \"\\x41\\102\\n\" } arg { name: \"l\" ints: [1, -2] ints: 3 } arg { name: \"e\" } "
      "arg { name: \"inf\" floats: -inf floats: 1 } }");
  EXPECT_EQ(net.name, "ab");
  ASSERT_EQ(net.ops.size(), 1U);
  const auto& args = net.ops[0].attributes;
  ASSERT_EQ(args.size(), 6U);
  EXPECT_EQ(args[0].f, -15);
  EXPECT_EQ(args[1].i, 16);
  EXPECT_EQ(args[2].s, "AB\n");
  EXPECT_THAT(args[3].ints, ElementsAre(1, -2, 3));
  EXPECT_EQ(args[4].type, onnx::AttributeType::Ints);  // an argument that holds nothing
  EXPECT_THAT(args[5].floats, ElementsAre(-std::numeric_limits<float>::infinity(), 1));
}

TEST(Caffe2Text, NamesTheLineOfAFault) {
  EXPECT_THAT(refusal("name: \"a\"\nlayer { }"), HasSubstr("line 2: NetDef has no field 'layer'"));
  EXPECT_THAT(refusal("op { type: \"A\""), HasSubstr("ends"));
  EXPECT_THAT(refusal("op { arg { i: 1.5 } }"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("op { arg { i: 99999999999999999999 } }"), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("op { arg { f: x } }"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("name: \"a"), HasSubstr("middle of a string"));
  EXPECT_THAT(refusal("name: \"\\q\""), HasSubstr("escape"));
  EXPECT_THAT(refusal("name \"a\""), HasSubstr("expected ':'"));
  EXPECT_THAT(refusal("name: \"a\" }"), HasSubstr("expected a name"));
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "op { arg { n { ";
  EXPECT_THAT(refusal(deep), HasSubstr("nest deeper"));
}

TEST(Caffe2Net, IsToldFromOnnxByContent) {
  const auto binary = toWire("name: \"n\" op { input: \"x\" output: \"y\" type: \"Relu\" }");
  ASSERT_TRUE(binary.ok());
  EXPECT_TRUE(*looksLikeNet({.bytes = bytesOf(*binary)}));
  EXPECT_TRUE(*looksLikeNet({.bytes = bytesOf("# text\nop {")}));
  const auto nameless = toWire("op { output: \"y\" type: \"Relu\" } external_input: \"x\"");
  ASSERT_TRUE(nameless.ok());
  EXPECT_TRUE(*looksLikeNet({.bytes = bytesOf(*nameless)}));

  using namespace onnx_writer;
  const std::string onnxFile =
      onnx_writer::Model()
          .graph(
              Graph("g").input("x", kFloat, {1}).node(onnx_writer::Node("Relu", {"x"}, {"y"})).output("y", kFloat, {1}))
          .bytes();
  EXPECT_FALSE(*looksLikeNet({.bytes = bytesOf(onnxFile)}));
  EXPECT_FALSE(*looksLikeNet({.bytes = bytesOf("ir_version: 3\ngraph { }")}));
  EXPECT_FALSE(*looksLikeNet({}));
}

TEST(Caffe2Net, EveryWriteOfABlobIsAValue) {
  const onnx::Model model = modelOf(
      "op { input: \"x\" output: \"y\" type: \"A\" } op { input: \"y\" output: \"y\" type: \"B\" } "
      "op { input: \"y\" input: \"x\" output: \"x\" type: \"C\" } external_output: \"y\" external_output: \"x\"");
  const auto& nodes = model.graph.nodes;
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_THAT(nodes[0].outputs, ElementsAre("y.1"));
  EXPECT_THAT(nodes[1].inputs, ElementsAre("y.1"));
  EXPECT_THAT(nodes[1].outputs, ElementsAre("y"));
  EXPECT_THAT(nodes[2].inputs, ElementsAre("y", "x"));
  EXPECT_THAT(nodes[2].outputs, ElementsAre("x.1"));  // the input keeps the name that users know
  EXPECT_THAT(namesOf(model.graph.inputs), ElementsAre("x"));
  EXPECT_THAT(namesOf(model.graph.outputs), ElementsAre("y", "x.1"));
}

TEST(Caffe2Net, FillsBecomeInitializers) {
  const onnx::Model model = modelOf(
      "op { input: \"x\" input: \"w\" output: \"y\" type: \"Add\" } external_input: \"w\" external_input: \"x\"",
      "op { output: \"w\" type: \"GivenTensorFill\" arg { name: \"shape\" ints: 2 } "
      "arg { name: \"values\" floats: 1 floats: 2 } }");
  EXPECT_THAT(namesOf(model.graph.inputs), ElementsAre("x", "w"));  // users may give w another value
  ASSERT_EQ(model.graph.initializers.size(), 1U);
  const auto tensor = onnx::toTensor(model.graph.initializers[0], model);
  ASSERT_TRUE(tensor.ok()) << tensor.error().text();
  EXPECT_THAT(tensor->doubles(), ElementsAre(1, 2));
}

TEST(Caffe2Net, ReadersTellElementKinds) {
  const onnx::Model model =
      modelOf("op { input: \"t\" input: \"i\" input: \"n\" output: \"y\" type: \"SparseLengthsSum\" }");
  ASSERT_EQ(model.graph.inputs.size(), 3U);
  EXPECT_EQ(onnx::describe(model.graph.inputs[0].type), "f32[...]");
  EXPECT_EQ(onnx::describe(model.graph.inputs[1].type), "i64[...]");
  EXPECT_EQ(onnx::describe(model.graph.inputs[2].type), "i32[...]");
}

TEST(Caffe2Net, ShapesFromAnArgument) {
  const onnx::Model model = modelOf(
      "op { input: \"x\" output: \"y\" type: \"Relu\" } arg { name: \"input_shape_info\" "
      "tensors { name: \"x\" dims: 2 dims: 3 data_type: INT32 } }");
  EXPECT_EQ(onnx::describe(model.graph.inputs[0].type), "i32[2,3]");
}

TEST(Caffe2Net, FaultsOfFills) {
  const auto faultOf = [](const std::string& arg) {
    const auto model = toModel(netOf("op { output: \"w\" type: \"GivenTensorFill\" " + arg + " }"), std::nullopt);
    return model.ok() ? std::string() : model.error().message;
  };
  EXPECT_THAT(faultOf(""), HasSubstr("'values' is required"));
  EXPECT_THAT(faultOf("arg { name: \"values\" s: \"abc\" }"), HasSubstr("does not hold"));
  EXPECT_FALSE(toModel(Net{}, std::nullopt).ok());
}

TEST(Caffe2Net, AnInitNetNeedsACaffe2Net) {
  using namespace onnx_writer;
  const std::string file = onnx_writer::Model().graph(Graph("g").output("y", kFloat, {1})).bytes();
  const SharedBytes model{bytesOf(file), nullptr}, init;
  const auto parsed = parseModelFile(model, "", &init);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::Usage);
}

TEST(Caffe2Net, OperatorsAreInTheRegistry) {
  EXPECT_THAT(onnx::supportedOperators(), Contains("caffe2::SparseLengthsSumFused4BitRowwise"));
  EXPECT_NE(onnx::findRow(kDomain, "FC", kVersion), nullptr);
  EXPECT_EQ(onnx::findRow("", "FC", 17), nullptr);
}

}  // namespace

}  // namespace aglow::caffe2
