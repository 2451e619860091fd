// Graphs as ONNX models and back: what is read again computes the same bits, for every operator of the records.
#include <gtest/gtest.h>

#include <filesystem>

#include "compile/evaluate.h"
#include "graph/builder.h"
#include "import/onnx/export.h"
#include "import/onnx/importer.h"
#include "import/onnx/model_writer.h"
#include "onnx_writer.h"
#include "ops/all_ops.h"
#include "random_graph.h"
#include "support/file.h"

namespace aglow {

namespace {

std::unique_ptr<Module> imported(const onnx::Model& model) {
  ReferenceEvaluator evaluator;
  auto result = onnx::importModel(model, {.shapes = {}, .dims = {}, .given = {}, .evaluator = &evaluator});
  if (!result.ok()) {
    ADD_FAILURE() << result.diagnostics().errors().front().text();
    return nullptr;
  }
  return std::move(result->module);
}

std::unique_ptr<Module> roundTrip(const Function& function) {
  const auto model = onnx::exportModel(function);
  if (!model.ok()) {
    ADD_FAILURE() << model.error().text();
    return nullptr;
  }
  const auto bytes = std::make_shared<std::string>(onnx::serialized(*model));
  EXPECT_EQ(*bytes, onnx::serialized(*onnx::exportModel(function)));
  const auto read = onnx::parseModel(std::as_bytes(std::span(*bytes)), bytes);
  if (!read.ok()) {
    ADD_FAILURE() << read.error().text();
    return nullptr;
  }
  return imported(*read);
}

// The same outputs under the same names, bit for bit.
void expectSameResults(const Function& before, const Function& after, const NamedTensors& bindings) {
  const auto expected = evaluateFunction(before, bindings), got = evaluateFunction(after, bindings);
  ASSERT_EQ(expected.ok(), got.ok()) << (got.ok() ? expected.error() : got.error()).text();
  if (!expected.ok()) return;
  const std::vector<Placeholder*> names = outputsOf(before), again = outputsOf(after);
  ASSERT_EQ(names.size(), again.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i]->name(), again[i]->name());
    EXPECT_TRUE((*expected)[i] == (*got)[i]) << names[i]->name() << " " << names[i]->type().text();
  }
}

void expectRoundTrip(const Function& function, Random& random) {
  const std::unique_ptr<Module> again = roundTrip(function);
  ASSERT_NE(again, nullptr);
  NamedTensors bindings;
  for (const Placeholder* place : inputsOf(function))
    bindings.emplace(place->name(), randomTensor(random, place->type()));
  expectSameResults(function, *again->functions().front(), bindings);
}

class ExportedOperator : public ::testing::TestWithParam<std::string> {};

TEST_P(ExportedOperator, ReadsBackAsTheSame) {
  const OpDef& op = opDef(*findOp(GetParam()));
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    Module module;
    RandomGraph random(module, seed, {.maxElements = 300, .predicates = 0.2});
    Function* function = module.addFunction("main");
    std::vector<Value> results;
    for (int i = 0; i < 6; ++i)
      if (Node* node = random.addNode(*function, op))
        for (int r = 0; r < node->resultCount(); ++r)
          if (random.random().chance(0.8)) results.push_back(node->result(r));
    for (const Value v : results) Builder(*function).output("y", v);
    ASSERT_GT(function->size(), 0U) << "no valid use was found";
    expectRoundTrip(*function, random.random());
  }
}

std::vector<std::string> operators() {
  std::vector<std::string> names;
  for (const OpDef* def : allOps())
    if (def->kind != OpKind::Storage && def->kind != OpKind::Derivative) names.emplace_back(def->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ExportedOperator, ::testing::ValuesIn(operators()),
                         [](const auto& info) { return info.param; });

TEST(Export, RandomGraphsReadBackAsTheSame) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Module module;
    RandomGraph random(module, seed, {.maxElements = 300});
    expectRoundTrip(*random.addFunction("main", 12), random.random());
  }
}

TEST(Export, WritesStandardNodesUnderTheirNames) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{2, 3}));
  const Value w =
      b.constant(Tensor::of(Type(ElemKind::Float32, Shape{3, 2}), std::vector<float>{1, 2, 3, 4, 5, 6}), "w");
  const Value product = b.named("product").matMul(x, w);
  b.output("y", b.named("act").relu(product));
  const auto model = onnx::exportModel(b.function());
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->opsets.size(), 1U);
  ASSERT_EQ(model->graph.nodes.size(), 2U);
  EXPECT_EQ(model->graph.nodes[0].opType, "MatMul");
  EXPECT_EQ(model->graph.nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(model->graph.nodes[1].name, "act");
  EXPECT_EQ(model->graph.nodes[1].outputs, std::vector<std::string>{"y"});
}

TEST(Export, KeepsAnAttributeThatNoFloatHolds) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float64, Shape{4}));
  b.output("y", b.leakyRelu(x, {.alpha = 0.1234567890123456789}));
  const std::unique_ptr<Module> again = roundTrip(b.function());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->functions().front()->front()->attrs().real("alpha"), 0.1234567890123456789);
}

TEST(Export, KeepsQuantizedTypesAndNamesOfAnyBytes) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Type type =
      *Type::quantized(ElemKind::QInt8, Shape{2, 2}, {.axis = 1, .scales = {0.1F, 0.25F}, .offsets = {3, -4}});
  const Value x = b.input("x", type);
  const Value c = b.constant(Tensor::fromInts(type, {1, -2, 3, -4}), "c\xff");
  b.output("y", b.concat({x, c}, {.axis = 0}));
  const std::unique_ptr<Module> again = roundTrip(b.function());
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(inputsOf(*again->functions().front()).front()->type(), type);
  EXPECT_NE(again->findStorage("c\\xff"), nullptr);
}

TEST(Export, RefusesAPlaceholderThatIsReadAndWritten) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value state = b.input("state", Type(ElemKind::Float32, Shape{2}));
  b.save(b.neg(state), static_cast<Placeholder*>(state.node));
  const auto model = onnx::exportModel(b.function());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, Code::UnsupportedFeature);
}

TEST(Export, PutsTensorsIntoAFileOfTheirOwn) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "aglow_export_external";
  std::filesystem::create_directories(folder);
  Module module;
  Builder b(*module.addFunction("main"));
  Random random(1);
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{50, 50}));
  const Value w = b.constant(randomTensor(random, Type(ElemKind::Float32, Shape{50, 50})), "w");
  const Value small = b.constant(randomTensor(random, Type(ElemKind::Float32, Shape{50})), "small");
  b.output("y", b.add(b.mul(x, w), small));
  const std::string path = (folder / "m.onnx").string();
  ASSERT_TRUE(onnx::writeModel(path, *onnx::exportModel(b.function()), {.external = true}).ok());
  EXPECT_EQ(std::filesystem::file_size(path + ".data"), 50U * 50U * 4U);
  const auto read = onnx::readModel(path);
  ASSERT_TRUE(read.ok()) << read.error().text();
  const std::unique_ptr<Module> again = imported(*read);
  ASSERT_NE(again, nullptr);
  expectSameResults(b.function(), *again->functions().front(), {{"x", randomTensor(random, x.type())}});
  std::filesystem::remove_all(folder);
}

// ---------------------------------------------------------------- the own domain, with whatever a file may say

std::string faultOf(const onnx_writer::Node& node) {
  using namespace onnx_writer;  // NOLINT: as in the other tests of import
  const auto file = std::make_shared<std::string>(
      onnx_writer::Model()
          .opsetImport("ai.aglow", 1)
          .graph(onnx_writer::Graph("g").input("x", kFloat, {2, 3}).node(node).output("y", kFloat, {2, 3}))
          .bytes());
  const auto model = onnx::parseModel(std::as_bytes(std::span(*file)), file);
  if (!model.ok()) return model.error().text();
  ReferenceEvaluator evaluator;
  const auto result = onnx::importModel(*model, {.shapes = {}, .dims = {}, .given = {}, .evaluator = &evaluator});
  return result.ok() ? "" : result.diagnostics().errors().front().text();
}

TEST(OwnDomain, ReportsWhatBreaksARecord) {
  const auto own = [](std::string_view op) { return onnx_writer::Node(op, {"x"}, {"y"}).domain("ai.aglow").name("n"); };
  const int64_t huge = std::numeric_limits<int64_t>::max(), low = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(faultOf(own("Relu")), "");
  EXPECT_NE(faultOf(own("NoSuch")).find("not supported"), std::string::npos);
  EXPECT_NE(faultOf(own("Save")).find("not supported"), std::string::npos);
  EXPECT_NE(faultOf(own("Relu").attribute("nope", 1)).find("no attribute 'nope'"), std::string::npos);
  EXPECT_NE(faultOf(own("LeakyRelu").attribute("alpha", 1)).find("expected a float"), std::string::npos);
  EXPECT_NE(faultOf(own("Softmax").attribute("axis", huge)), "");
  EXPECT_NE(faultOf(own("Softmax").attribute("axis", low)), "");
  EXPECT_NE(faultOf(own("Cast").attribute("to", "f99")).find("element kind"), std::string::npos);
  EXPECT_NE(faultOf(own("Reduce").attribute("kind", "median")), "");
  EXPECT_NE(faultOf(own("Reshape").attribute("shape", std::vector<int64_t>{huge, huge})), "");
  EXPECT_NE(faultOf(own("Slice").attribute("starts", std::vector<int64_t>{low, huge})), "");
  EXPECT_NE(faultOf(own("Splat").attribute("shape", std::vector<int64_t>{1, 2})), "");
  EXPECT_NE(faultOf(own("Relu").attribute("_predicate", 1)), "");
  EXPECT_NE(faultOf(own("WinogradConv").attribute("tile", huge).attribute("lanes", low)), "");
}

}  // namespace

}  // namespace aglow
