// Kernels along the lines of an axis, as processors and as GPUs get them, against the reference: lines of one element
// and of many, shared by a group or alone, with equal elements, infinities and NaN.
#include "on_device.h"

namespace aglow {

namespace {

class LineKernels : public OnBoth {
protected:
  // The outputs of a few uses of an operator on one input.
  template <class Make>
  void expectEach(const Shape& shape, ElemKind kind, bool specials, Make&& make) {
    SCOPED_TRACE(fmt::format("{} {}", Type(kind, shape).text(), specials ? "with specials" : ""));
    Module module;
    Builder b(*module.addFunction("f"));
    make(b, b.input("x", Type(kind, shape)));
    expectSame(b.function(), 5, specials);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, LineKernels, ::testing::Bool(), OnBoth::nameOf);

TEST_P(LineKernels, PutTheFirstInOrder) {
  struct Line {
    Shape shape;
    int64_t axis, k;
  };
  const Line lines[] = {
      {{3, 1, 2}, 1, 1}, {{2, 64}, 1, 7},   {{2, 65, 3}, 1, 65}, {{70}, 0, 3},       {{2, 1100}, 1, 90},
      {{1100}, 0, 1100}, {{1023, 2}, 0, 5}, {{17000}, 0, 17000}, {{2, 17000}, 1, 1}, {{2, 2049}, 1, 70},
  };
  for (const Line& line : lines)
    for (const ElemKind kind : {ElemKind::Float32, ElemKind::Int8})
      expectEach(line.shape, kind, kind == ElemKind::Float32, [&](Builder& b, Value x) {
        for (const bool largest : {true, false}) {
          Node* node = b.topK(x, {.k = line.k, .axis = line.axis, .largest = largest});
          b.output(largest ? "high" : "low", node->result(0));
          b.output(largest ? "high_at" : "low_at", node->result(1));
        }
      });
  for (const ElemKind kind : {ElemKind::Float16, ElemKind::Float64, ElemKind::UInt64, ElemKind::Int64})
    expectEach({2, 300}, kind, isFloat(kind), [](Builder& b, Value x) {
      Node* node = b.topK(x, {.k = 200, .axis = 1});
      b.output("high", node->result(0));
      b.output("high_at", node->result(1));
    });
}

// Rounds of long runs, of which the last is short: all of them together have no more places than the lines.
TEST_P(LineKernels, PutLongLinesInOrder) {
  const std::pair<Shape, int64_t> lines[] = {{{2, 4097}, 4097}, {{3, 600}, 500}};
  for (const auto& [shape, k] : lines)
    expectEach(shape, ElemKind::Int8, false, [k = k](Builder& b, Value x) {
      Node* node = b.topK(x, {.k = k, .axis = 1});
      b.output("high", node->result(0));
      b.output("high_at", node->result(1));
    });
}

TEST_P(LineKernels, ScanInParts) {
  const std::pair<Shape, int64_t> lines[] = {{{3, 5}, 1}, {{2, 515}, 1}, {{130, 2}, 0}, {{129, 40}, 0}, {{7, 1, 3}, 1}};
  for (const auto& [shape, axis] : lines)
    for (const auto& [kind, how] : {std::pair(ElemKind::Float32, "sum"), std::pair(ElemKind::Int32, "prod")})
      expectEach(shape, kind, false, [&](Builder& b, Value x) {
        for (const bool reverse : {false, true})
          for (const bool exclusive : {false, true})
            b.output(fmt::format("y_{}_{}", reverse, exclusive),
                     b.scan(x, {.kind = how, .axis = axis, .exclusive = exclusive, .reverse = reverse}));
      });
}

TEST_P(LineKernels, FindTheBestPlace) {
  const std::pair<Shape, int64_t> lines[] = {{{3, 5}, 1}, {{2, 515}, 1}, {{130, 2}, 0}, {{4000, 1}, 0}, {{129, 40}, 0}};
  for (const auto& [shape, axis] : lines)
    for (const ElemKind kind : {ElemKind::Float32, ElemKind::Int8})
      expectEach(shape, kind, kind == ElemKind::Float32, [&](Builder& b, Value x) {
        for (const char* best : {"max", "min"})
          for (const bool last : {false, true})
            b.output(fmt::format("{}_{}", best, last),
                     b.argReduce(x, {.kind = best, .axis = axis, .keepdims = last, .last = last}));
      });
}

TEST_P(LineKernels, ObserveChannelsThatAreNotThere) {
  for (const Shape& shape : {Shape{2, 0, 3}, Shape{0, 4, 3}, Shape{2, 4, 3}})
    expectEach(shape, ElemKind::Float32, false, [&](Builder& b, Value x) {
      Node* node =
          b.observe(b.input("counts", Type(ElemKind::Int64, {514})),
                    b.input("channels", Type(ElemKind::Float64, {4, shape[1]})), x, {.axis = 1, .stepBits = 2});
      b.output("counts_now", node->result(0));
      b.output("channels_now", node->result(1));
    });
}

}  // namespace

}  // namespace aglow
