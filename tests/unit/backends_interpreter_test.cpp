#include <gmock/gmock.h>

#include <cmath>

#include "backends/interpreter/interpreter.h"
#include "graph/builder.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/place.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Type kRow(ElemKind::Float32, Shape{4});
const std::vector<float> kValues = {1, -2, 3, -4};

Program placedProgram(std::string_view body) {
  auto program = parseProgram(
      "declare { %x = placeholder f32[4] %p = placeholder bool[2] %y = placeholder "
      "f32[4] %w = constant f32[4] = [1, 2, 3, 4] %s = splat f32[4] = 10 }\nprogram @f(@in %x, @in %p, @out %y) {" +
      std::string(body) + "}");
  EXPECT_TRUE(program.ok()) << program.error().text();
  EXPECT_TRUE(placeArena(*program).ok());
  const Status valid = verify(*program);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
  return *std::move(program);
}

std::vector<double> runText(std::string_view body, const std::vector<int>& predicate = {1, 1}, bool poison = true) {
  InterpreterOptions options;
  options.poison = poison;
  auto executable = InterpreterExecutable::create(placedProgram(body), options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  const auto results =
      executable->run(std::vector{Tensor::of(kRow, kValues), Tensor::of(Type(ElemKind::Bool, Shape{2}), predicate)});
  EXPECT_TRUE(results.ok()) << results.error().text();
  return results->at(0).doubles();
}

TEST(Interpreter, RunsAGeneratedGraph) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", kRow);
  const Value sum = b.add(x, b.constant(Tensor::of(kRow, std::vector<float>{10, 20, 30, 40}), "w"));
  const Value square = b.reshape(sum, {.shape = {2, 2}});
  b.output("product", b.matMul(square, square));
  b.output("same", x);
  auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(placeArena(*program).ok());
  auto executable = InterpreterExecutable::create(*std::move(program));
  ASSERT_TRUE(executable.ok());
  ASSERT_EQ(executable->inputs().size(), 1U);
  EXPECT_EQ(executable->outputs()[0].name, "product");
  for (int run = 0; run < 2; ++run) {
    const auto results = executable->run(std::vector{Tensor::of(kRow, kValues)});
    ASSERT_TRUE(results.ok());
    EXPECT_THAT((*results)[0].doubles(),
                ElementsAre(11 * 11 + 18 * 33, 11 * 18 + 18 * 36, 33 * 11 + 36 * 33, 33 * 18 + 36 * 36));
    EXPECT_THAT((*results)[1].doubles(), ElementsAre(1, -2, 3, -4));
  }
}

TEST(Interpreter, SharesViewsAndBuffersInPlace) {
  EXPECT_THAT(runText("%a = alloc f32[4] Add @out %a, @in %x, @in %w Neg @inout %a, @in %a "
                      "%front = tensorview %y at 0 : f32[2] %back = tensorview %a at 8 : f32[2] "
                      "copy @out %y, @in %a copy.start @out %front, @in %back token 1 "
                      "copy.wait @out %front, @in %back token 1 dealloc %a"),
              ElementsAre(-6, 0, -6, 0));
}

TEST(Interpreter, SkipsWhatAPredicateRulesOutForAllRows) {
  const std::string_view body = "copy @out %y, @in %w Relu @out %y, @in %x if %p";
  EXPECT_THAT(runText(body, {0, 0}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(runText(body, {0, 1}), ElementsAre(1, 0, 3, 0));
}

TEST(Interpreter, SkipsSingleRows) {
  const std::string_view body =
      "%a = tensorview %x at 0 : f32[2,2] %b = tensorview %y at 0 : f32[2,2] %v = tensorview %w at 0 : f32[2,2] "
      "copy @out %y, @in %w ";
  const auto rows = [&](std::string_view instr, const std::vector<int>& wanted) {
    return runText(std::string(body) + std::string(instr) + " if %p", wanted);
  };
  EXPECT_THAT(rows("Neg @out %b, @in %a", {0, 1}), ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(rows("Neg @out %b, @in %a", {1, 0}), ElementsAre(-1, 2, 3, 4));
  EXPECT_THAT(rows("MatMul @out %b, @in %a, @in %v", {0, 1}), ElementsAre(1, 2, 3 * 1 - 4 * 3, 3 * 2 - 4 * 4));
}

TEST(Interpreter, KeepsDeclaredMemoryFromRunToRun) {
  auto executable = InterpreterExecutable::create(placedProgram("Add @inout %s, @in %s, @in %w copy @out %y, @in %s"));
  ASSERT_TRUE(executable.ok());
  const std::vector<Tensor> inputs = {Tensor(kRow), Tensor(Type(ElemKind::Bool, Shape{2}))};
  EXPECT_THAT((*executable->run(inputs))[0].doubles(), ElementsAre(11, 12, 13, 14));
  EXPECT_THAT((*executable->run(inputs))[0].doubles(), ElementsAre(12, 14, 16, 18));
}

TEST(Interpreter, ChangesNoInputThatIsAlsoAnOutput) {
  auto program = parseProgram(
      "declare { %state = placeholder f32[4] } program @f(@inout %state) { Neg @inout %state, @in "
      "%state }");
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(placeArena(*program).ok());
  auto executable = InterpreterExecutable::create(*std::move(program));
  ASSERT_TRUE(executable.ok());
  const Tensor state = Tensor::of(kRow, kValues);
  EXPECT_THAT((*executable->run(std::vector{state}))[0].doubles(), ElementsAre(-1, 2, -3, 4));
  EXPECT_THAT(state.doubles(), ElementsAre(1, -2, 3, -4));
}

TEST(Interpreter, ReadsAndWritesTheCallersMemory) {
  auto executable = InterpreterExecutable::create(placedProgram("Add @out %y, @in %x, @in %w"));
  ASSERT_TRUE(executable.ok());
  float x[4] = {1, 2, 3, 4}, y[5] = {};
  uint8_t p[2] = {1, 1};
  const Type rows(ElemKind::Bool, Shape{2});
  const auto ref = [](const Type& type, void* data) { return TensorRef{&type, static_cast<std::byte*>(data)}; };
  const std::vector<TensorRef> in = {ref(kRow, x), ref(rows, p)};
  ASSERT_TRUE(executable->run(in, std::vector{ref(kRow, y)}).ok());
  x[3] = 10;
  ASSERT_TRUE(executable->run(in, std::vector{ref(kRow, y)}).ok());
  EXPECT_THAT(y, ElementsAre(2, 4, 6, 14, 0));

  const Status crooked = executable->run(in, std::vector{ref(kRow, reinterpret_cast<char*>(y) + 1)});
  ASSERT_FALSE(crooked.ok());
  EXPECT_THAT(crooked.error().text(), HasSubstr("output 'y': its address is not a multiple of 4"));
  EXPECT_FALSE(executable->run(in, std::vector{TensorRef{}}).ok());
  EXPECT_FALSE(executable->run(in, std::vector{ref(rows, y)}).ok());
  EXPECT_FALSE(executable->run(in, std::vector<TensorRef>{}).ok());
}

TEST(Interpreter, ChangesAStateInPlace) {
  auto program = parseProgram(
      "declare { %state = placeholder f32[4] } program @f(@inout %state) { Neg @inout %state, @in %state }");
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(placeArena(*program).ok());
  auto executable = InterpreterExecutable::create(*std::move(program));
  ASSERT_TRUE(executable.ok());
  float state[4] = {1, 2, 3, 4};
  const std::vector<TensorRef> refs = {{&kRow, reinterpret_cast<std::byte*>(state)}};
  ASSERT_TRUE(executable->run(refs, refs).ok());
  EXPECT_THAT(state, ElementsAre(-1, -2, -3, -4));
}

TEST(Interpreter, TellsOfEveryInstruction) {
  struct Log : RunObserver {
    void begin(size_t instr) override { text += "+" + std::to_string(instr); }
    void end(size_t instr) override { text += "-" + std::to_string(instr); }
    std::string text;
  } log;
  auto executable = InterpreterExecutable::create(placedProgram("copy @out %y, @in %w Relu @out %y, @in %x"));
  ASSERT_TRUE(executable.ok());
  ASSERT_TRUE(executable->run(std::vector{Tensor(kRow), Tensor(Type(ElemKind::Bool, Shape{2}))}, &log).ok());
  EXPECT_EQ(log.text, "+0-0+1-1");
}

TEST(Interpreter, PoisonShowsStaleReads) {
  // The second buffer takes the place of the first; a skipped instruction leaves it as it is.
  const std::string_view body =
      "%a = alloc f32[4] copy @out %a, @in %x dealloc %a %b = alloc f32[4] copy @out %b, @in %w if %p "
      "copy @out %y, @in %b dealloc %b";
  EXPECT_THAT(runText(body, {0, 0}, true), ::testing::Each(::testing::Truly([](double v) { return std::isnan(v); })));
  EXPECT_THAT(runText(body, {0, 0}, false), ElementsAre(1, -2, 3, -4));
}

TEST(Interpreter, RefusesWhatDoesNotFitTheProgram) {
  auto executable = InterpreterExecutable::create(placedProgram("copy @out %y, @in %x"));
  ASSERT_TRUE(executable.ok());
  const Tensor rows(Type(ElemKind::Bool, Shape{2}));
  const auto few = executable->run(std::vector{rows});
  ASSERT_FALSE(few.ok());
  EXPECT_EQ(few.error().code, Code::BadBinding);
  EXPECT_THAT(few.error().text(), HasSubstr("expected 2 inputs, got 1"));
  const auto other = executable->run(std::vector{Tensor(Type(ElemKind::Float32, Shape{5})), rows});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().text(), HasSubstr("input 'x': expected f32[4], got f32[5]"));
  EXPECT_FALSE(executable->run(std::vector{Tensor(), rows}).ok());

  std::map<std::string, Tensor> named = {{"x", Tensor(kRow)}};
  auto bound = bindByName(executable->inputs(), named);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(bound.error().code, Code::MissingBinding);
  named["p"] = rows;
  bound = bindByName(executable->inputs(), named);
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(bound->at(1).type(), rows.type());
  named["q"] = rows;
  bound = bindByName(executable->inputs(), named);
  ASSERT_FALSE(bound.ok());
  EXPECT_THAT(bound.error().text(), HasSubstr("there is no input 'q'"));
}

TEST(Interpreter, CountsMemoryBeforeItAllocates) {
  const std::string_view body = "%a = alloc f32[4] Add @out %a, @in %w, @in %s copy @out %y, @in %a dealloc %a";
  InterpreterOptions options;
  options.memoryLimit = 64 + 4 * 16 + 2;
  EXPECT_TRUE(InterpreterExecutable::create(placedProgram(body), options).ok());
  options.memoryLimit -= 1;
  const auto refused = InterpreterExecutable::create(placedProgram(body), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::TooLarge);
}

TEST(Interpreter, NamesTheNodeThatMetABadValue) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value index = b.input("i", Type(ElemKind::Int64, Shape{1}));
  b.output("y", b.named("pick").gather(b.input("x", kRow), index, {.axis = 0}));
  auto program = generate(b.function());
  ASSERT_TRUE(program.ok());
  ASSERT_TRUE(placeArena(*program).ok());
  auto executable = InterpreterExecutable::create(*std::move(program));
  const auto results = executable->run(std::vector{Tensor::ints({9}), Tensor(kRow)});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.error().code, Code::RuntimeValue);
  EXPECT_THAT(results.error().text(), HasSubstr("node 'pick' (Gather)"));
}

TEST(Interpreter, SupportsEverythingButComposites) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", kRow);
  EXPECT_TRUE(Interpreter().supports(*b.neg(x).node));
  const Decision no = Interpreter().supports(*b.softmax(x).node);
  EXPECT_FALSE(no);
  EXPECT_THAT(no.reason(), HasSubstr("Softmax"));
}

}  // namespace
}  // namespace aglow
