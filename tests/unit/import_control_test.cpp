// Control flow and sequences are settled while a model is imported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_node.h"

namespace aglow {

namespace {

using namespace onnx_writer;  // NOLINT: the models are written in its words
using ::testing::HasSubstr;
using testing_support::floats;
using Doubles = std::vector<double>;

// A model's outputs for inputs that are given by name; `frozen` counts the inputs that became part of the program.
struct Outcome {
  Result<std::vector<aglow::Tensor>> results;
  int frozen = 0;
};
Outcome run(const onnx_writer::Graph& graph, const std::map<std::string, aglow::Tensor>& inputs = {},
            bool given = true) {
  const std::string file = onnx_writer::Model(21).opsetImport("com.microsoft", 1).graph(graph).bytes();
  auto model = onnx::parseModel(std::as_bytes(std::span(file)), nullptr);
  if (!model.ok()) return {model.error()};
  ReferenceEvaluator evaluator;
  onnx::ImportOptions options{.shapes = {}, .dims = {}, .given = {}, .evaluator = &evaluator};
  if (given)
    for (const auto& [name, value] : inputs) options.given[name].tensors = {value};
  auto imported = onnx::importModel(*model, options);
  if (!imported.ok()) return {imported.diagnostics().errors().front()};
  NamedTensors bindings;
  int frozen = 0;
  for (const Port& port : imported->interface.inputs) {
    if (port.kind == Port::Kind::Tensor) bindings[port.placeholder] = inputs.at(port.name);
    frozen += port.kind == Port::Kind::Frozen ? 1 : 0;
  }
  return {evaluateFunction(*imported->module->findFunction("main"), bindings), frozen};
}

Doubles values(const Outcome& r, size_t output = 0) {
  EXPECT_TRUE(r.results.ok()) << r.results.error().text();
  return r.results.ok() ? (*r.results)[output].doubles() : Doubles{};
}

void expectRefused(const Outcome& r, Code code, const std::string& text) {
  ASSERT_FALSE(r.results.ok());
  EXPECT_EQ(r.results.error().code, code) << r.results.error().text();
  EXPECT_THAT(r.results.error().text(), HasSubstr(text));
}

// ReduceSum gives another shape than the other branch: no program is the same for both.
onnx_writer::Graph chooser(const char* function = "Neg") {
  onnx_writer::Graph yes("yes"), no("no");
  yes.node(onnx_writer::Node(function, {"x"}, {"a"})).output("a", kFloat, {function == std::string("Neg") ? 2 : 1});
  no.node(onnx_writer::Node("Identity", {"x"}, {"b"})).output("b", kFloat, {2});
  return onnx_writer::Graph()
      .input("c", kBool, {})
      .input("x", kFloat, {2})
      .node(onnx_writer::Node("If", {"c"}, {"y"}).attribute("then_branch", yes).attribute("else_branch", no))
      .output("y", kFloat, {2});
}

TEST(ImportIf, ChoosesWhenTheProgramRuns) {
  for (const int64_t condition : {0, 1}) {
    const Outcome r = run(chooser(), {{"c", aglow::Tensor::scalar(ElemKind::Bool, static_cast<double>(condition))},
                                      {"x", floats({2}, {1, 2})}});
    EXPECT_EQ(values(r), condition != 0 ? (Doubles{-1, -2}) : (Doubles{1, 2}));
    EXPECT_EQ(r.frozen, 0);
  }
}

TEST(ImportIf, ChoosesByTheGivenConditionWhereResultsDiffer) {
  for (const int64_t condition : {0, 1}) {
    const Outcome r =
        run(chooser("ReduceSum"),
            {{"c", aglow::Tensor::scalar(ElemKind::Bool, static_cast<double>(condition))}, {"x", floats({2}, {1, 2})}});
    EXPECT_EQ(values(r), condition != 0 ? (Doubles{3}) : (Doubles{1, 2}));
    EXPECT_EQ(r.frozen, 1) << "the condition, and not x";
  }
}

TEST(ImportIf, AsksForAConditionThatIsNotGiven) {
  expectRefused(run(chooser("ReduceSum"), {}, false), Code::DynamicShape, "'c'");
}

// An index that lies nowhere would end the run, though nobody asks for what it picks.
TEST(ImportIf, LeavesWhatMayFailToTheBranch) {
  onnx_writer::Graph yes("yes"), no("no");
  yes.node(onnx_writer::Node("Gather", {"x", "i"}, {"a"})).output("a", kFloat, {1});
  no.node(onnx_writer::Node("ReduceSum", {"x"}, {"b"}).attribute("keepdims", 1)).output("b", kFloat, {1});
  const auto graph =
      onnx_writer::Graph()
          .input("c", kBool, {})
          .input("x", kFloat, {2})
          .input("i", kInt64, {1})
          .node(onnx_writer::Node("If", {"c"}, {"y"}).attribute("then_branch", yes).attribute("else_branch", no))
          .output("y", kFloat, {1});
  const Outcome r = run(
      graph,
      {{"c", aglow::Tensor::scalar(ElemKind::Bool, 0)}, {"x", floats({2}, {1, 2})}, {"i", aglow::Tensor::ints({7})}});
  EXPECT_EQ(values(r), (Doubles{3}));
  EXPECT_EQ(r.frozen, 1);
}

// y = x + step for each step; collects y. Runs `trips` times, or while the sum of y stays below 10.
onnx_writer::Graph counting(bool conditional, const std::vector<int64_t>& trips) {
  onnx_writer::Graph body("body");
  body.input("i", kInt64, {}).input("go", kBool, {}).input("state", kInt64, {});
  body.node(onnx_writer::Node("Add", {"state", "i"}, {"next"}))
      .node(onnx_writer::Node("Less", {"next", "limit"}, {"on"}));
  body.node(onnx_writer::Node("Identity", {"next"}, {"seen"}));
  body.output("on", kBool, {}).output("next", kInt64, {}).output("seen", kInt64, {});
  onnx_writer::Graph graph;
  graph.initializer(onnx_writer::Tensor("limit", kInt64, {}).int64s({10}));
  graph.initializer(onnx_writer::Tensor("start", kInt64, {}).int64s({1}));
  graph.initializer(onnx_writer::Tensor("true", kBool, {}).int32s({1}));
  if (!trips.empty()) graph.initializer(onnx_writer::Tensor("trips", kInt64, {}).int64s(trips));
  graph.node(
      onnx_writer::Node("Loop", {trips.empty() ? "" : "trips", conditional ? "true" : "", "start"}, {"last", "all"})
          .attribute("body", body));
  return graph.output("last", kInt64, {}).output("all", kInt64, {"n"});
}

TEST(ImportLoop, UnrollsTripsAndConditions) {
  EXPECT_EQ(values(run(counting(false, {3})), 1), (Doubles{1, 2, 4}));
  EXPECT_EQ(values(run(counting(true, {})), 1), (Doubles{1, 2, 4, 7, 11}));
  EXPECT_EQ(values(run(counting(true, {2})), 1), (Doubles{1, 2}));
  EXPECT_EQ(values(run(counting(false, {9}))), Doubles{37}) << "without a condition, what the body says is ignored";
}

TEST(ImportLoop, MayTakeNoStep) {
  const Outcome r = run(counting(false, {0}));
  EXPECT_EQ(values(r), Doubles{1});
  ASSERT_TRUE(r.results.ok());
  EXPECT_EQ((*r.results)[1].type().shape(), Shape{0});
}

TEST(ImportLoop, GivesUpOnEndlessOnes) {
  expectRefused(run(counting(false, {INT64_MAX})), Code::LimitReached, "steps");
  expectRefused(run(counting(false, {})), Code::BadNode, "never ends");
}

onnx_writer::Graph running(const std::vector<int64_t>& inputDirections, const std::vector<int64_t>& outputDirections) {
  onnx_writer::Graph body("body");
  body.input("sum", kFloat, {}).input("element", kFloat, {});
  body.node(onnx_writer::Node("Add", {"sum", "element"}, {"next"}))
      .node(onnx_writer::Node("Identity", {"next"}, {"seen"}));
  body.output("next", kFloat, {}).output("seen", kFloat, {});
  onnx_writer::Graph graph;
  graph.input("x", kFloat, {3}).initializer(onnx_writer::Tensor("zero", kFloat, {}).floats({0}));
  graph.node(onnx_writer::Node("Scan", {"zero", "x"}, {"last", "all"})
                 .attribute("body", body)
                 .attribute("num_scan_inputs", 1)
                 .attribute("scan_input_directions", inputDirections)
                 .attribute("scan_output_directions", outputDirections));
  return graph.output("last", kFloat, {}).output("all", kFloat, {3});
}

TEST(ImportScan, GoesBothWays) {
  const std::map<std::string, aglow::Tensor> x{{"x", floats({3}, {1, 2, 4})}};
  EXPECT_EQ(values(run(running({0}, {0}), x), 1), (Doubles{1, 3, 7}));
  EXPECT_EQ(values(run(running({1}, {0}), x), 1), (Doubles{4, 6, 7}));
  EXPECT_EQ(values(run(running({1}, {1}), x), 1), (Doubles{7, 6, 4}));
  expectRefused(run(running({0, 0}, {0}), x), Code::BadNode, "scan_input_directions");
}

TEST(ImportSequence, RefusesPositionsOutside) {
  for (const int64_t position : {-3, -2, 1, 2}) {
    onnx_writer::Graph graph;
    graph.input("x", kFloat, {1}).initializer(onnx_writer::Tensor("at", kInt64, {}).int64s({position}));
    graph.node(onnx_writer::Node("Neg", {"x"}, {"z"})).node(onnx_writer::Node("SequenceConstruct", {"x", "z"}, {"s"}));
    graph.node(onnx_writer::Node("SequenceAt", {"s", "at"}, {"y"})).output("y", kFloat, {1});
    const Outcome r = run(graph, {{"x", floats({1}, {5})}});
    if (position == -3 || position == 2)
      expectRefused(r, Code::BadNode, "a sequence of 2");
    else
      EXPECT_EQ(values(r), Doubles{position == 1 ? -5.0 : 5.0});
  }
}

TEST(ImportSequence, SplitsAndJoins) {
  onnx_writer::Graph graph;
  graph.input("x", kFloat, {5}).initializer(onnx_writer::Tensor("two", kInt64, {}).int64s({2}));
  graph.node(onnx_writer::Node("SplitToSequence", {"x", "two"}, {"s"}));
  graph.node(onnx_writer::Node("SequenceErase", {"s", ""}, {"t"}));
  graph.node(onnx_writer::Node("ConcatFromSequence", {"t"}, {"y"}).attribute("axis", 0).attribute("new_axis", 1));
  graph.output("y", kFloat, {2, 2});
  EXPECT_EQ(values(run(graph, {{"x", floats({5}, {1, 2, 3, 4, 5})}})), (Doubles{1, 2, 3, 4}));
}

TEST(ImportRefused, SaysWhy) {
  onnx_writer::Graph graph;
  graph.input("x", kFloat, {2}).node(onnx_writer::Node("EPContext", {"x"}, {"y"}).domain("com.microsoft"));
  graph.output("y", kFloat, {2});
  expectRefused(run(graph), Code::UnsupportedOp, "another compiler");
}

}  // namespace

}  // namespace aglow
