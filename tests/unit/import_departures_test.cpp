// What is mended in models that depart from the standard, and what is left for import to refuse.
#include "import/onnx/departures.h"

#include <gmock/gmock.h>

#include <span>
#include <thread>

#include "import/onnx/proto.h"
#include "onnx_writer.h"

namespace aglow {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace w = onnx_writer;

onnx::Model mended(const w::Graph& graph, const w::Model& around = w::Model()) {
  const std::string file = w::Model(around).graph(graph).bytes();
  auto model = onnx::parseModel(std::as_bytes(std::span(file)), nullptr);
  EXPECT_TRUE(model.ok());
  onnx::mend(*model);
  return *std::move(model);
}

std::vector<std::string> order(const std::vector<onnx::Node>& nodes) {
  std::vector<std::string> names;
  for (const onnx::Node& node : nodes) names.push_back(node.outputs.front());
  return names;
}

std::vector<std::string> texts(const onnx::Model& model) {
  std::vector<std::string> list;
  for (const onnx::Departure& departure : model.departures) list.push_back(departure.text("m"));
  return list;
}

w::Node relu(const std::string& from, const std::string& to) { return {"Relu", {from}, {to}}; }

w::Graph chain(const std::vector<std::pair<std::string, std::string>>& steps) {
  w::Graph graph;
  graph.input("x", w::kFloat, {1});
  for (const auto& [from, to] : steps) graph.node(relu(from, to));
  return graph.output("y", w::kFloat, {1});
}

TEST(Departures, NodesAreSortedAndKeepTheirOrderOtherwise) {
  const onnx::Model model = mended(chain({{"x", "p"}, {"b", "y"}, {"a", "b"}, {"x", "q"}, {"x", "a"}}));
  EXPECT_THAT(order(model.graph.nodes), ElementsAre("p", "q", "a", "b", "y"));
  ASSERT_EQ(model.departures.size(), 1U);
  EXPECT_TRUE(model.departures.front().silent);
  EXPECT_THAT(texts(model), ElementsAre("warning[E204] m: the nodes are not in order: node 'y' (Relu) reads 'b', which "
                                        "node 'b' (Relu) computes later; they are sorted"));
  EXPECT_THAT(texts(mended(chain({{"x", "a"}, {"a", "y"}}))), IsEmpty());
}

TEST(Departures, CyclesAndUnknownNamesStayAsTheyAre) {
  const onnx::Model ring = mended(chain({{"b", "a"}, {"a", "b"}, {"x", "y"}}));
  EXPECT_THAT(order(ring.graph.nodes), ElementsAre("a", "b", "y"));
  EXPECT_THAT(texts(ring), IsEmpty());
  EXPECT_THAT(texts(mended(chain({{"ghost", "a"}, {"a", "y"}}))), IsEmpty());
}

TEST(Departures, NestedGraphsAreMendedInTheirPlaces) {
  const w::Graph branch = w::Graph("b")
                              .node(relu("inner", "out"))
                              .node(relu("late", "inner"))
                              .node(w::Node("Gelu", {"inner"}, {"g"}).domain("com.microsoft"))
                              .output("out", w::kFloat, {-1});
  const onnx::Model model = mended(w::Graph()
                                       .input("c", w::kBool, {})
                                       .input("x", w::kFloat, {1})
                                       .node(w::Node("If", {"c"}, {"y"})
                                                 .name("choice")
                                                 .attribute("then_branch", branch)
                                                 .attribute("else_branch", branch))
                                       .node(relu("x", "late"))
                                       .output("y", w::kFloat, {1}));
  EXPECT_THAT(order(model.graph.nodes), ElementsAre("late", "y"));
  EXPECT_THAT(order(model.graph.nodes[1].attributes[0].g->nodes), ElementsAre("inner", "out", "g"));
  EXPECT_EQ(model.opsets.at("com.microsoft"), 1);
  EXPECT_THAT(
      texts(model),
      ElementsAre(HasSubstr("m: the nodes are not in order"),
                  HasSubstr("m: node 'choice' (If): then_branch: a size of -1 is declared: 'out' as f32[-1]"),
                  HasSubstr("then_branch: the nodes are not in order"), HasSubstr("domain 'com.microsoft'"),
                  HasSubstr("else_branch: a size of -1"), HasSubstr("else_branch: the nodes are not in order")));
}

TEST(Departures, ANameFromOutsideIsNotWaitedFor) {
  // What the branch computes under a name of the graph around it is its own, from there on.
  const w::Graph branch = w::Graph("b").node(relu("x", "out")).node(relu("out", "x")).output("out", w::kFloat, {1});
  const onnx::Model model =
      mended(w::Graph()
                 .input("c", w::kBool, {})
                 .input("x", w::kFloat, {1})
                 .node(w::Node("If", {"c"}, {"y"}).attribute("then_branch", branch).attribute("else_branch", branch))
                 .output("y", w::kFloat, {1}));
  EXPECT_THAT(texts(model), IsEmpty());
}

TEST(Departures, FunctionsAreSortedAndGetTheirDomains) {
  const w::Function function = w::Function("local", "F", {"a"}, {"b"})
                                   .opset("", 21)
                                   .node(relu("r", "b"))
                                   .node(w::Node("Gelu", {"a"}, {"r"}).domain("com.microsoft"));
  const onnx::Model model =
      mended(w::Graph().input("x", w::kFloat, {1}).node(w::Node("F", {"x"}, {"y"}).domain("local")),
             w::Model().opsetImport("local", 1).function(function));
  EXPECT_THAT(order(model.functions.front().nodes), ElementsAre("r", "b"));
  EXPECT_EQ(model.functions.front().opsets.at("com.microsoft"), 1);
  EXPECT_FALSE(model.opsets.contains("com.microsoft"));
  EXPECT_THAT(texts(model), ElementsAre(HasSubstr("function 'local::F': the nodes are not in order"),
                                        HasSubstr("function 'local::F': domain 'com.microsoft'")));
}

TEST(Departures, OnlyEqualConstantsAreOne) {
  const auto constant = [](const w::Tensor& value) { return w::Node("Constant", {}, {"c"}).attribute("value", value); };
  const w::Tensor typed = w::Tensor("t", w::kFloat, {2}).floats({1, 2});
  const w::Tensor raw = w::Tensor("u", w::kFloat, {2}).raw(w::rawBytes<float>({1, 2}));
  const w::Tensor other = w::Tensor("t", w::kFloat, {2}).floats({1, 3}),
                  shaped = w::Tensor("t", w::kFloat, {1, 2}).floats({1, 2});
  const auto left = [&](const w::Tensor& second) {
    return mended(w::Graph().node(constant(typed)).node(constant(second))).graph.nodes.size();
  };
  EXPECT_EQ(left(typed), 1U);
  EXPECT_EQ(left(raw), 1U);  // however it is written
  EXPECT_EQ(left(other), 2U);
  EXPECT_EQ(left(shaped), 2U);
  EXPECT_EQ(left(w::Tensor("t", w::kFloat, {2}).floats({1})), 2U);  // malformed, which import reports
  const w::Tensor words = w::Tensor("s", w::kString, {1}).strings({"a"});
  EXPECT_EQ(mended(w::Graph().node(constant(words)).node(constant(words))).graph.nodes.size(), 1U);
  const onnx::Model three = mended(w::Graph().node(constant(typed)).node(constant(raw)).node(constant(typed)));
  EXPECT_EQ(three.graph.nodes.size(), 1U);
}

TEST(Departures, DomainsThatNobodyKnowsStayUndeclared) {
  const auto opsets = [](const std::string& domain) {
    return mended(w::Graph().node(w::Node("Foo", {"x"}, {"y"}).domain(domain))).opsets.size();
  };
  EXPECT_EQ(opsets("com.microsoft"), 2U);
  EXPECT_EQ(opsets("ai.onnx.ml"), 2U);
  EXPECT_EQ(opsets("com.nowhere"), 1U);
  EXPECT_EQ(opsets("caffe2"), 1U);
}

TEST(Departures, AreJudgedByTheirUser) {
  const onnx::Model model = mended(chain({{"a", "y"}, {"x", "a"}}));
  EXPECT_TRUE(onnx::Tolerance{}.judge(model).empty());
  EXPECT_EQ((onnx::Tolerance{.strict = true, .warn = {}}.judge(model).exitCode()), ExitCode::BadModel);
  int heard = 0;
  const onnx::Tolerance once{.strict = false, .warn = onnx::onceEach([&](const onnx::Departure&) { ++heard; })};
  std::thread other([&] { EXPECT_TRUE(once.judge(model).empty()); });
  EXPECT_TRUE(once.judge(model).empty());
  other.join();
  EXPECT_EQ(heard, 1);
}

}  // namespace

}  // namespace aglow
