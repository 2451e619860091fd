// Sessions: what is compiled when, what is kept, and runs from several threads.
#include "dynamic/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "onnx_writer.h"

namespace aglow {

namespace {

using namespace onnx_writer;  // NOLINT: the models are written in its words
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Inputs = std::map<std::string, ModelValue>;

onnx::Model parsed(const onnx_writer::Graph& graph) {
  auto file = std::make_shared<std::string>(onnx_writer::Model(18).graph(graph).bytes());
  auto model = onnx::parseModel(std::as_bytes(std::span(*file)), file);
  EXPECT_TRUE(model.ok()) << model.error().text();
  return *std::move(model);
}

// y = 2 x for any number of rows.
onnx_writer::Graph doubled() {
  return onnx_writer::Graph()
      .input("x", kFloat, {"n", 2})
      .node(onnx_writer::Node("Add", {"x", "x"}, {"y"}))
      .output("y", kFloat, {"n", 2});
}

// The values of x that are not zero, doubled; their number is known only at run time.
onnx_writer::Graph chosen() {
  return onnx_writer::Graph()
      .input("x", kFloat, {"n"})
      .node(onnx_writer::Node("Abs", {"x"}, {"a"}))
      .node(onnx_writer::Node("Cast", {"a"}, {"mask"}).attribute("to", 9))
      .node(onnx_writer::Node("Compress", {"x", "mask"}, {"c"}).attribute("axis", 0))
      .node(onnx_writer::Node("Add", {"c", "c"}, {"y"}))
      .output("y", kFloat, {"k"});
}

// Rows of x up to a length that comes as an input of one element.
onnx_writer::Graph reshaped() {
  return onnx_writer::Graph()
      .input("x", kFloat, {"n"})
      .input("shape", kInt64, {2})
      .node(onnx_writer::Node("Neg", {"x"}, {"a"}))
      .node(onnx_writer::Node("Reshape", {"a", "shape"}, {"b"}))
      .node(onnx_writer::Node("Neg", {"b"}, {"y"}))
      .output("y", kFloat, {"p", "q"});
}

ModelValue floats(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  return ModelValue::of(aglow::Tensor::fromDoubles(aglow::Type(ElemKind::Float32, Shape(dims)), values));
}

class Opened {
public:
  explicit Opened(const onnx_writer::Graph& graph, SessionOptions options = {}) {
    options.compiled = [this](const Compilation&) { ++compiled; };
    auto session = Session::open(parsed(graph), std::move(options));
    EXPECT_TRUE(session.ok()) << session.diagnostics().errors().front().text();
    if (session.ok()) session_ = *std::move(session);
  }

  std::vector<double> run(const Inputs& inputs) {
    auto outputs = session_->run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.diagnostics().errors().front().text();
    return outputs.ok() ? outputs->front().tensor().doubles() : std::vector<double>{};
  }
  std::string fault(const Inputs& inputs) {
    const auto outputs = session_->run(inputs);
    return outputs.ok() ? "" : outputs.diagnostics().errors().front().text();
  }
  Session& operator*() { return *session_; }

  std::atomic<int> compiled = 0;

private:
  std::unique_ptr<Session> session_;
};

TEST(Session, CompilesOncePerSize) {
  Opened session(doubled());
  EXPECT_EQ(session.compiled, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(session.run({{"x", floats({1, 2}, {1, 2})}}), ElementsAre(2, 4));
    EXPECT_THAT(session.run({{"x", floats({2, 2}, {1, 2, 3, 4})}}), ElementsAre(2, 4, 6, 8));
  }
  EXPECT_EQ(session.compiled, 2);
  EXPECT_EQ((*session).parts(), 2u);
}

TEST(Session, CompilesPreparedSizesWhenOpened) {
  SessionOptions options;
  options.prepared = {{"n", {4, 1}}};
  Opened session(doubled(), std::move(options));
  EXPECT_EQ(session.compiled, 2);
  EXPECT_THAT(session.run({{"x", floats({1, 2}, {1, 2})}}), ElementsAre(2, 4));
  EXPECT_EQ(session.compiled, 2);
}

// Sizes that are not kept any more do not count.
TEST(Session, CountsTheBytesOfWhatIsKept) {
  SessionOptions options;
  options.maxParts = 2;
  options.backend.contexts = 1;
  Opened session(onnx_writer::Graph()
                     .input("x", kFloat, {"n", 64})
                     .node(onnx_writer::Node("Transpose", {"x"}, {"t"}))
                     .node(onnx_writer::Node("MatMul", {"x", "t"}, {"a"}))
                     .node(onnx_writer::Node("MatMul", {"a", "x"}, {"y"}))
                     .output("y", kFloat, {"n", 64}),
                 std::move(options));
  const auto runRows = [&](int64_t rows) {
    session.run({{"x", floats({rows, 64}, std::vector<double>(static_cast<size_t>(rows * 64), 1))}});
    return (*session).bytes();
  };
  const int64_t first = runRows(8), both = runRows(16);
  EXPECT_GT(first, 0);
  EXPECT_GT(both, first);
  for (const int64_t rows : {24, 32, 40}) runRows(rows);
  runRows(8);
  EXPECT_EQ(runRows(16), both);
}

// Whole, and cut where a shape depends on values; more callers than contexts.
TEST(Session, RunsSideBySide) {
  for (const int contexts : {1, 3, 16}) {
    SessionOptions options;
    options.backend.contexts = contexts;
    options.backend.queue = 16;
    Opened whole(doubled(), options), cut(chosen(), options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t)
      threads.emplace_back([&, t] {
        const double number = t + 1;
        for (int i = 0; i < 8; ++i) {
          EXPECT_THAT(whole.run({{"x", floats({1, 2}, {number, -number})}}), ElementsAre(2 * number, -2 * number));
          EXPECT_THAT(cut.run({{"x", floats({3}, {number, 0, -number})}}), ElementsAre(2 * number, -2 * number));
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Session, RefusesMoreCallersThanMayWait) {
  SessionOptions options;
  options.backend.contexts = 1;
  options.backend.queue = 0;
  std::promise<void> reached, goOn;
  options.compiled = [&](const Compilation&) {
    reached.set_value();
    goOn.get_future().wait();
  };
  auto session = Session::open(parsed(doubled()), std::move(options));
  ASSERT_TRUE(session.ok());
  const Inputs inputs = {{"x", floats({1, 2}, {1, 2})}};
  std::thread running([&] { EXPECT_TRUE((*session)->run(inputs).ok()); });
  reached.get_future().wait();
  const auto busy = (*session)->run(inputs);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.diagnostics().errors().front().code, Code::Busy);
  goOn.set_value();
  running.join();
  EXPECT_TRUE((*session)->run(inputs).ok());
}

TEST(Session, PadsToPreparedSizes) {
  SessionOptions options;
  options.prepared = {{"n", {2, 4}}};
  options.pad = true;
  Opened session(doubled(), std::move(options));
  EXPECT_THAT(session.run({{"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}}), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(session.compiled, 2);
  // Beyond the largest there is nothing to pad to.
  EXPECT_EQ(session.run({{"x", floats({5, 2}, std::vector<double>(10, 1))}}).size(), 10u);
  EXPECT_EQ(session.compiled, 3);
}

TEST(Session, KeepsNoMorePartsThanAllowed) {
  SessionOptions options;
  options.maxParts = 2;
  Opened session(doubled(), std::move(options));
  for (int64_t n : {1, 2, 1, 3, 1}) session.run({{"x", floats({n, 2}, std::vector<double>(2 * n, 1))}});
  EXPECT_EQ((*session).parts(), 2u);
  EXPECT_EQ(session.compiled, 3);  // 1 was always used last but once
  session.run({{"x", floats({2, 2}, {1, 1, 1, 1})}});
  EXPECT_EQ(session.compiled, 4);
}

TEST(Session, CutsWhereAValueDecides) {
  Opened session(chosen());
  EXPECT_THAT(session.run({{"x", floats({4}, {0, 1, 0, 2})}}), ElementsAre(2, 4));
  EXPECT_EQ(session.compiled, 2);
  // Other values of as many elements need nothing new.
  EXPECT_THAT(session.run({{"x", floats({4}, {3, 0, 4, 0})}}), ElementsAre(6, 8));
  EXPECT_EQ(session.compiled, 2);
  EXPECT_THAT(session.run({{"x", floats({4}, {3, 0, 0, 0})}}), ElementsAre(6));
  EXPECT_EQ(session.compiled, 3);
  EXPECT_TRUE(session.run({{"x", floats({4}, {0, 0, 0, 0})}}).empty());
}

TEST(Session, MakesSmallDecidingInputsConstantWithoutACut) {
  Opened session(reshaped());
  const auto shape = [](int64_t p, int64_t q) { return ModelValue::of(aglow::Tensor::ints({p, q})); };
  const ModelValue x = floats({6}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(session.run({{"x", x}, {"shape", shape(2, 3)}}), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(session.compiled, 1);
  session.run({{"x", x}, {"shape", shape(2, 3)}});
  EXPECT_EQ(session.compiled, 1);
  session.run({{"x", x}, {"shape", shape(3, 2)}});
  EXPECT_EQ(session.compiled, 2);
}

TEST(Session, ReportsFaultsOfInputs) {
  Opened session(doubled());
  EXPECT_THAT(session.fault({}), HasSubstr("'x' (f32[n,2]) was not given"));
  EXPECT_THAT(session.fault({{"z", floats({2}, {1, 2})}}), HasSubstr("no input 'z'"));
  EXPECT_THAT(session.fault({{"x", floats({2}, {1, 2})}}), HasSubstr("expected f32[n,2]"));
  EXPECT_THAT(session.run({{"x", floats({1, 2}, {1, 2})}}), ElementsAre(2, 4));
}

TEST(Session, ReportsFaultsOfTheModelWhenOpened) {
  const onnx_writer::Graph bad = onnx_writer::Graph()
                                     .input("x", kFloat, {"n"})
                                     .node(onnx_writer::Node("Nonsense", {"x"}, {"a"}))
                                     .node(onnx_writer::Node("Abs", {"ghost"}, {"y"}))
                                     .output("y", kFloat, {"n"});
  const auto session = Session::open(parsed(bad), {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.diagnostics().errors().size(), 2u);
}

TEST(Session, IsSafeFromSeveralThreads) {
  SessionOptions options;
  options.backend.threads = 2;
  options.maxParts = 4;
  Opened session(chosen(), std::move(options));
  std::atomic<int> wrong = 0;
  const auto work = [&](int seed) {
    for (int i = 0; i < 40; ++i) {
      std::vector<double> x, expected;
      for (int k = 0; k < 8; ++k) {
        x.push_back((seed * 7 + i * 5 + k * 3) % 4 == 0 ? 0 : k + 1);
        if (x.back() != 0) expected.push_back(2 * x.back());
      }
      const auto outputs = (*session).run({{"x", floats({8}, x)}});
      if (!outputs.ok() || Diagnosed(outputs)->front().tensor().doubles() != expected) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace

}  // namespace aglow
