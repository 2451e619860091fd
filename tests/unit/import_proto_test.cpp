// The ONNX reader: what a right file becomes, and how each kind of wrong file is refused.
#include "import/onnx/proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "import/wire/wire.h"
#include "unit/onnx_writer.h"

namespace aglow {
namespace {

namespace w = onnx_writer;
using testing::ElementsAre;
using testing::HasSubstr;

Result<onnx::Model> parsed(const std::string& file) {
  auto kept = std::make_shared<const std::string>(file);
  return onnx::parseModel(std::as_bytes(std::span(*kept)), kept);
}

onnx::Model good(const std::string& file) {
  auto model = parsed(file);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return model.ok() ? *std::move(model) : onnx::Model{};
}

// The error of a file that must be refused as malformed.
std::string refused(const std::string& file, Code code = Code::BadFile) {
  const auto model = parsed(file);
  if (model.ok()) return "accepted";
  EXPECT_EQ(model.error().code, code) << model.error().text();
  return model.error().text();
}

std::string withGraph(const w::Graph& graph) { return w::Model().graph(graph).bytes(); }

TEST(OnnxProto, ReadsModelGraphAndNodes) {
  const auto model =
      good(w::Model(17)
               .producer("writer")
               .opsetImport("ai.onnx.ml", 3)
               .metadata("author", "nobody")
               .graph(w::Graph("main")
                          .input("x", w::kFloat, {1, "batch", w::unknownDim})
                          .valueInfo("t", w::Type::unranked(w::kInt64))
                          .initializer(w::Tensor("w", w::kFloat, {2}).floats({1, 2}))
                          .node(w::Node("Relu", {"x", ""}, {"y"}).name("relu").domain("ai.onnx").overload("o"))
                          .output("y", w::kDouble, {}))
               .bytes());
  EXPECT_EQ(model.irVersion, 10);
  EXPECT_EQ(model.producer, "writer");
  EXPECT_EQ(model.opsets, (onnx::Opsets{{"", 17}, {"ai.onnx.ml", 3}}));
  EXPECT_EQ(model.metadata, (onnx::StringPairs{{"author", "nobody"}}));
  EXPECT_EQ(model.graph.name, "main");
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  const onnx::Node& node = model.graph.nodes[0];
  EXPECT_EQ(node.name, "relu");
  EXPECT_EQ(node.opType, "Relu");
  EXPECT_EQ(node.domain, "");
  EXPECT_EQ(node.overload, "o");
  EXPECT_THAT(node.inputs, ElementsAre("x", ""));
  EXPECT_THAT(node.outputs, ElementsAre("y"));
  ASSERT_EQ(model.graph.initializers.size(), 1u);
  EXPECT_EQ(model.graph.initializers[0].name, "w");
  EXPECT_EQ(onnx::describe(model.graph.inputs.at(0).type), "f32[1,batch,?]");
  EXPECT_EQ(onnx::describe(model.graph.outputs.at(0).type), "f64[]");
  EXPECT_EQ(onnx::describe(model.graph.valueInfo.at(0).type), "i64[...]");
}

TEST(OnnxProto, ReadsEveryKindOfAttribute) {
  const auto model = good(withGraph(w::Graph().node(
      w::Node("Op", {}, {})
          .attribute("f", 0.5f)
          .attribute("i", -3)
          .attribute("s", "text")
          .attribute("t", w::Tensor("c", w::kInt64, {}).int64s({7}))
          .attribute("g", w::Graph("body").node(w::Node("Inner", {}, {"z"})))
          .attribute("floats", std::vector<float>{1, 2})
          .attribute("ints", std::vector<int64_t>{-1, 5})
          .attribute("strings", std::vector<std::string>{"a", ""})
          .attribute("tp", w::Type::sequence(w::Type::unranked(w::kFloat)))
          .attribute("sparse", w::SparseTensor(w::Tensor("v", w::kFloat, {0}), w::Tensor("i", w::kInt64, {0}), {3})))));
  const auto& a = model.graph.nodes.at(0).attributes;
  ASSERT_EQ(a.size(), 10u);
  EXPECT_EQ(a[0].type, onnx::AttributeType::Float);
  EXPECT_EQ(a[0].f, 0.5f);
  EXPECT_EQ(a[1].i, -3);
  EXPECT_EQ(a[2].s, "text");
  EXPECT_EQ(a[3].t->name, "c");
  EXPECT_EQ(a[4].g->nodes.at(0).opType, "Inner");
  EXPECT_THAT(a[5].floats, ElementsAre(1, 2));
  EXPECT_THAT(a[6].ints, ElementsAre(-1, 5));
  EXPECT_THAT(a[7].strings, ElementsAre("a", ""));
  EXPECT_EQ(onnx::describe(*a[8].tp), "sequence(f32[...])");
  EXPECT_THAT(a[9].sparse->dims, ElementsAre(3));
}

TEST(OnnxProto, ReadsFunctions) {
  const auto model = good(
      w::Model()
          .graph(w::Graph())
          .function(w::Function("my.domain", "Twice", {"x"}, {"y"})
                        .attribute("needed")
                        .attribute(w::Attribute("scale", 2.0f))
                        .opset("ai.onnx", 18)
                        .node(w::Node("Op", {"x"}, {"y"}).attribute(w::Attribute::reference("value", 4, "needed"))))
          .bytes());
  ASSERT_EQ(model.functions.size(), 1u);
  const onnx::Function& f = model.functions[0];
  EXPECT_EQ(f.name, "Twice");
  EXPECT_EQ(f.domain, "my.domain");
  EXPECT_THAT(f.attributes, ElementsAre("needed"));
  EXPECT_EQ(f.attributeProtos.at(0).f, 2.0f);
  EXPECT_EQ(f.opsets, (onnx::Opsets{{"", 18}}));
  EXPECT_EQ(f.nodes.at(0).attributes.at(0).refAttrName, "needed");
}

TEST(OnnxProto, DescribesTypes) {
  const auto tensor = w::Type::tensor(w::kInt4, {2, -1});
  const auto model = good(withGraph(w::Graph()
                                        .input("a", w::Type::optional(w::Type::sequence(tensor)))
                                        .input("b", w::Type::map(w::kString, tensor))
                                        .input("c", w::Type())
                                        .input("d", 99, {"n\x1b[0m"})
                                        .input("e", w::Type().field(9, ""))));
  const auto& in = model.graph.inputs;
  ASSERT_EQ(in.size(), 5u);
  EXPECT_EQ(onnx::describe(in[0].type), "optional(sequence(i4[2,-1]))");
  EXPECT_EQ(onnx::describe(in[1].type), "map(string, i4[2,-1])");
  EXPECT_EQ(onnx::describe(in[2].type), "no type");
  EXPECT_EQ(onnx::describe(in[3].type), "type 99[n\\x1b[0m]");
  EXPECT_EQ(onnx::describe(in[4].type), "optional(no type)");
}

TEST(OnnxProto, MergesRepeatedSingularFields) {
  const auto model = good(w::Model()
                              .producer("first")
                              .producer("last")
                              .graph(w::Graph("a").node(w::Node("One", {}, {})))
                              .graph(w::Graph("b").node(w::Node("Two", {}, {})))
                              .bytes());
  EXPECT_EQ(model.producer, "last");
  EXPECT_EQ(model.graph.name, "b");
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  EXPECT_EQ(model.graph.nodes[1].opType, "Two");
}

TEST(OnnxProto, LastAlternativeOfAOneofWins) {
  auto type = w::Type::sequence(w::Type::unranked(w::kFloat));
  type.append(w::Type::tensor(w::kInt8, {4}).bytes());
  const auto model = good(withGraph(w::Graph().input("x", type)));
  EXPECT_EQ(onnx::describe(model.graph.inputs.at(0).type), "i8[4]");
}

TEST(OnnxProto, GivesAttributesWithoutTypeTheTypeOfTheirField) {
  const auto model = good(withGraph(w::Graph().node(
      w::Node("Op", {}, {}).attribute(w::Attribute("a").field(3, 5)).attribute(w::Attribute("b").field(14, "")))));
  EXPECT_EQ(model.graph.nodes.at(0).attributes.at(0).type, onnx::AttributeType::Int);
  EXPECT_EQ(model.graph.nodes.at(0).attributes.at(1).type, onnx::AttributeType::Type);
}

TEST(OnnxProto, RefusesAttributesWithoutTheirValue) {
  for (const int type : {4, 5, 11, 13}) {
    const w::Node node = w::Node("Op", {}, {}).attribute(w::Attribute("body").type(type));
    EXPECT_THAT(refused(withGraph(w::Graph().node(node))), HasSubstr("attribute 'body' lacks the value"));
  }
}

TEST(OnnxProto, SkipsUnknownFields) {
  const auto model = good(w::Model().field(500, "later").field(501, 7).graph(w::Graph("g").field(77, 1)).bytes());
  EXPECT_EQ(model.graph.name, "g");
}

TEST(OnnxProto, KeepsNamesThatAreNotUtf8) {
  const std::string name("\xff\x00\x80", 3);
  const auto model = good(withGraph(w::Graph(name)));
  EXPECT_EQ(model.graph.name, name);
}

TEST(OnnxProto, RefusesFilesOfOtherKinds) {
  EXPECT_THAT(refused(""), HasSubstr("empty"));
  EXPECT_THAT(refused("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(refused("\n<!DOCTYPE html><html></html>"), HasSubstr("HTML"));
  EXPECT_THAT(refused("<\n  ir_version: 8,\n  opset_import: [\"\" : 17]\n>\nagraph (float[N] x) => () {}"),
              HasSubstr("text form"));
  EXPECT_THAT(refused("ir_version: 3\ngraph { }\n"), HasSubstr("onnx.save"));
  EXPECT_THAT(refused(std::string("PK\x03\x04 and so on", 14)), HasSubstr("zip"));
  EXPECT_THAT(refused(std::string("\x1c\0\0\0TFL3", 8)), HasSubstr("TensorFlow Lite"));
  EXPECT_THAT(refused("what is this"), HasSubstr("malformed protobuf"));
}

TEST(OnnxProto, RefusesAModelWithoutGraph) { EXPECT_THAT(refused(w::Model().bytes()), HasSubstr("no graph")); }

TEST(OnnxProto, RefusesOrReadsEveryPrefix) {
  const std::string file = withGraph(w::Graph("graph")
                                         .input("x", w::kFloat, {1, "n"})
                                         .initializer(w::Tensor("w", w::kFloat, {2}).floats({1, 2}))
                                         .node(w::Node("Op", {"x"}, {"y"}).attribute("k", std::vector<int64_t>{300})));
  for (size_t size = 0; size < file.size(); ++size) EXPECT_THAT(refused(file.substr(0, size)), HasSubstr("E201"));
}

TEST(OnnxProto, SurvivesEveryFlippedBit) {
  const std::string file = withGraph(w::Graph("graph")
                                         .input("x", w::Type::optional(w::Type::tensor(w::kFloat, {1, "n"})))
                                         .initializer(w::Tensor("w", w::kInt32, {2}).int32s({1, -2}))
                                         .node(w::Node("Op", {"x"}, {"y"}).attribute("g", w::Graph("inner"))));
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto model = parsed(flipped);
    EXPECT_TRUE(model.ok() || model.error().code == Code::BadFile);
  }
}

// A field's tag and a length with nothing after it.
std::string claim(uint32_t field, uint64_t length) {
  std::string out;
  protozero::write_varint(std::back_inserter(out), (field << 3) | 2);
  protozero::write_varint(std::back_inserter(out), length);
  return out;
}

TEST(OnnxProto, RefusesLengthsBeyondTheFile) {
  // Multiples of 2^32 must not pass for small lengths.
  for (const uint64_t length : {uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 62, ~uint64_t{0}}) {
    EXPECT_THAT(refused(w::Model().graph(w::Graph()).append(claim(7, length)).bytes()), HasSubstr("are claimed"));
    EXPECT_THAT(refused(w::Model().graph(w::Graph()).append(claim(999, length)).bytes()), HasSubstr("are claimed"));
  }
}

TEST(OnnxProto, RefusesMalformedWire) {
  const auto tail = [](std::string_view bytes) { return w::Model().graph(w::Graph()).append(bytes).bytes(); };
  EXPECT_THAT(refused(tail("\x02\x01")), HasSubstr("no protobuf field"));         // field 0
  EXPECT_THAT(refused(tail("\x0b")), HasSubstr("no protobuf field"));             // a group
  EXPECT_THAT(refused(tail("\x08")), HasSubstr("middle of a field"));             // no value
  EXPECT_THAT(refused(tail("\x0d\x01\x01")), HasSubstr("are claimed"));           // 4 bytes, 2 there
  EXPECT_THAT(refused(tail(std::string(20, '\xff'))), HasSubstr("no protobuf"));  // a varint without end
}

TEST(OnnxProto, RefusesWrongWireTypes) {
  EXPECT_THAT(refused(w::Model().field(7, 1).bytes()), HasSubstr("expected a length and bytes, got a varint"));
  EXPECT_THAT(refused(w::Model().graph(w::Graph()).field(1, "x").bytes()), HasSubstr("expected a varint"));
  const auto tensor = [](const w::Tensor& t) { return withGraph(w::Graph().initializer(t)); };
  EXPECT_THAT(refused(tensor(w::Tensor("t", 1, {}).field(4, 1))), HasSubstr("expected 4 bytes, got a varint"));
  EXPECT_THAT(refused(tensor(w::Tensor("t", 1, {}).field(4, "123"))), HasSubstr("not a whole number of elements"));
  EXPECT_THAT(refused(tensor(w::Tensor("t", 1, {}).field(1, "\x80"))), HasSubstr("a number is malformed"));
}

TEST(OnnxProto, BoundsTheDepthOfGraphs) {
  const auto nested = [](int levels) {
    w::Graph graph;
    for (int i = 0; i < levels; ++i) graph = w::Graph().node(w::Node("If", {}, {}).attribute("g", graph));
    return withGraph(graph);
  };
  EXPECT_TRUE(parsed(nested(32)).ok());
  EXPECT_THAT(refused(nested(33)), HasSubstr("nest deeper than 100"));
}

TEST(OnnxProto, BoundsTheDepthOfTypes) {
  // From the inside out, so that 10,000 levels stay cheap: each level is written in front of what it holds.
  std::string inner;
  for (int i = 0; i < 10'000; ++i) {
    std::string front = claim(4, claim(1, inner.size()).size() + inner.size());
    front += claim(1, inner.size());
    inner.insert(0, front);
  }
  EXPECT_THAT(refused(withGraph(w::Graph().input("x", w::Type().append(inner)))), HasSubstr("nest deeper than 100"));
}

TEST(OnnxProto, ReadsAMillionEmptyNodes) {
  std::string nodes;
  for (int i = 0; i < 1'000'000; ++i) nodes += std::string_view("\x0a\x00", 2);
  EXPECT_EQ(good(withGraph(w::Graph().append(nodes))).graph.nodes.size(), 1'000'000u);
}

TEST(OnnxProto, BoundsTheNumberOfMessages) {
  std::string entries((wire::kMaxMessages + 1) * 2, '\0');
  for (size_t i = 0; i < entries.size(); i += 2) entries[i] = '\x42';
  EXPECT_THAT(refused(w::Model().append(entries).bytes(), Code::LimitReached), HasSubstr("messages"));
}

TEST(OnnxProto, ReadsNoModelWhereThereIsNone) {
  const auto missing = onnx::readModel("/nonexistent/model.onnx");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::FileRead);
  EXPECT_THAT(missing.error().text(), HasSubstr("/nonexistent/model.onnx"));
  for (const char* path : {"/", "/dev/null"}) {
    const auto model = onnx::readModel(path);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, Code::FileRead);
  }
}

}  // namespace
}  // namespace aglow
