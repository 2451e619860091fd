// Kernels that do a whole operator: attention, convolutions of few outputs and through Winograd's
// transforms, as processors and as GPUs get them, against the reference.
#include "backends/winograd.h"
#include "on_device.h"

namespace aglow {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

class WholeKernels : public OnBoth {
protected:
  static Value input(Builder& b, const char* name, Shape shape, ElemKind kind = ElemKind::Float32) {
    return b.input(name, Type(kind, std::move(shape)));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, WholeKernels, ::testing::Bool(), OnBoth::nameOf);

struct AttentionCase {
  Shape q, k, v;
  AttentionAttrs attrs;
  Shape mask = {};
  std::optional<ElemKind> maskKind = {};
  ElemKind kind = ElemKind::Float32;
};

TEST_P(WholeKernels, AttendInOnePassOverTheKeys) {
  const AttentionCase cases[] = {
      {{1, 2, 5, 7}, {1, 2, 9, 7}, {1, 2, 9, 3}, {.scale = 0.5}},
      {{2, 4, 70, 24}, {2, 2, 83, 24}, {2, 2, 83, 20}, {.scale = 0.3, .right = 0}},
      {{1, 3, 1, 16}, {1, 1, 130, 16}, {1, 1, 130, 33}, {.scale = 1, .softcap = 2, .left = 50, .offset = 129}},
      {{1, 2, 40, 8}, {1, 2, 35, 8}, {1, 2, 35, 8}, {.scale = 1, .left = 3, .right = 2, .offset = -6}},
      // Windows before and behind all keys, and around them, by more than 32 bits say.
      {{1, 1, 2, 16}, {1, 1, 4, 16}, {1, 1, 4, 16}, {.scale = 1, .right = 0, .offset = -2294967296}},
      {{1, 1, 2, 16}, {1, 1, 4, 16}, {1, 1, 4, 16}, {.scale = 1, .left = 0, .offset = 0x80000003}},
      {{1, 1, 2, 16}, {1, 1, 4, 16}, {1, 1, 4, 16}, {.scale = 1, .left = 0x90000000, .right = 0x90000000}},
      {{2, 2, 19, 8}, {2, 2, 70, 8}, {2, 2, 70, 8}, {.scale = 1}, {2, 1, 1, 70}, ElemKind::Bool},
      {{2, 2, 19, 8}, {2, 2, 70, 8}, {2, 2, 70, 8}, {.scale = 1, .right = 20}, {2, 19, 70}, ElemKind::Float32},
      {{1, 2, 17, 8}, {1, 2, 18, 8}, {1, 2, 18, 8}, {.scale = 1}, {}, std::nullopt, ElemKind::BFloat16},
  };
  uint64_t seed = 1;
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(seed);
    Module module;
    Builder b(*module.addFunction("f"));
    const Value q = input(b, "q", c.q, c.kind), k = input(b, "k", c.k, c.kind), v = input(b, "v", c.v, c.kind);
    const Value mask = c.maskKind ? input(b, "mask", c.mask, *c.maskKind) : Value{};
    AttentionAttrs attrs = c.attrs;
    attrs.precision = ElemKind::Float32;
    Node* node = b.attention(q, k, v, mask, attrs);
    ASSERT_TRUE(backend_->supports(*node)) << backend_->supports(*node).reason();
    b.output("y", b.neg(node->result(0)));
    expectSame(b.function(), ++seed, false);
  }
}

// Heads whose queries, keys and values local memory does not hold pass through it in slices.
TEST_F(OnGroups, AttendWithWideHeads) {
  const AttentionCase cases[] = {
      {{1, 1, 17, 400}, {1, 1, 20, 400}, {1, 1, 20, 400}, {.scale = 0.05}},
      {{1, 2, 9, 300}, {1, 1, 40, 300}, {1, 1, 40, 20}, {.scale = 0.1, .right = 3}},
      {{1, 1, 3, 1100}, {1, 1, 17, 1100}, {1, 1, 17, 1040}, {.scale = 0.02}, {3, 17}, ElemKind::Float32},
  };
  uint64_t seed = 1;
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(seed);
    Module module;
    Builder b(*module.addFunction("f"));
    const Value mask = c.maskKind ? b.input("mask", Type(*c.maskKind, c.mask)) : Value{};
    AttentionAttrs attrs = c.attrs;
    attrs.precision = ElemKind::Float32;
    const auto f32 = [&](const char* name, const Shape& shape) {
      return b.input(name, Type(ElemKind::Float32, shape));
    };
    Node* node = b.attention(f32("q", c.q), f32("k", c.k), f32("v", c.v), mask, attrs);
    ASSERT_TRUE(backend_->supports(*node)) << backend_->supports(*node).reason();
    b.output("y", node->result(0));
    expectSame(b.function(), ++seed, false);
  }
}

// Where queries are few, groups share the keys; what they found is put together in a second kernel.
TEST_F(OnGroups, AttendWithKeysSharedByGroups) {
  codegen::DeviceShape shape = kOfGroups;
  shape.computeUnits = 24;
  choose(shape);
  if (IsSkipped()) return;
  const AttentionCase cases[] = {
      {{1, 2, 1, 24}, {1, 1, 300, 24}, {1, 1, 300, 33}, {.scale = 0.4}},
      {{2, 1, 3, 16}, {2, 1, 270, 16}, {2, 1, 270, 16}, {.scale = 0.3, .softcap = 3, .right = 0, .offset = 200}},
      {{1, 1, 18, 300}, {1, 1, 150, 300}, {1, 1, 150, 8}, {.scale = 0.1}},
      {{1, 1, 2, 8}, {1, 1, 400, 8}, {1, 1, 400, 8}, {.scale = 1, .left = 200, .right = 20, .offset = 250}},
      // The second query sees no key; the first only those of a few groups.
      {{1, 1, 2, 8}, {1, 1, 260, 8}, {1, 1, 260, 8}, {.scale = 1, .right = 0, .offset = -1}},
      {{1, 1, 5, 8}, {1, 1, 260, 8}, {1, 1, 260, 8}, {.scale = 1}, {5, 260}, ElemKind::Bool},
  };
  uint64_t seed = 1;
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(seed);
    Module module;
    Builder b(*module.addFunction("f"));
    const Value mask = c.maskKind ? b.input("mask", Type(*c.maskKind, c.mask)) : Value{};
    AttentionAttrs attrs = c.attrs;
    attrs.precision = ElemKind::Float32;
    const auto f32 = [&](const char* name, const Shape& s) { return b.input(name, Type(ElemKind::Float32, s)); };
    b.output("y", b.neg(b.attention(f32("q", c.q), f32("k", c.k), f32("v", c.v), mask, attrs)->result(0)));
    auto program = generate(b.function());
    ASSERT_TRUE(program.ok());
    const Instr* attention = nullptr;
    for (const Instr& instr : program->instrs)
      if (instr.kind == Instr::Kind::Compute && opOf(instr.attrs.op()) == Op::Attention) attention = &instr;
    ASSERT_NE(attention, nullptr);
    EXPECT_GT(codegen::scratchBytes(*program, *attention, shape), 0);
    expectSame(b.function(), ++seed, false);
  }
}

// A query that sees no key gives zeros; one whose scores are minus infinity by themselves has no softmax.
TEST_P(WholeKernels, AttentionTellsHiddenKeysFromInfiniteScores) {
  Module module;
  Builder b(*module.addFunction("f"));
  const Value k = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{1, 1, 2, 1}), std::vector<double>{1, 2}));
  const Value q = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{1, 1, 3, 1}), std::vector<double>{1, -kInf, 1}));
  const Value mask =
      b.constant(Tensor::of(Type(ElemKind::Float32, Shape{3, 2}), std::vector<double>{-kInf, -kInf, 0, 0, 0, -kInf}));
  b.output("y", b.attention(q, k, k, mask, {.scale = 1, .precision = ElemKind::Float32})->result(0));
  expectSame(b.function(), 1, false);
}

TEST_F(OnDevice, AttentionKeepsNoScores) {
  constexpr const char* kText = R"(module {
  placeholder @q : f32[1,2,256,8]
  placeholder @k : f32[1,2,256,8]
  placeholder @y : f32[1,2,256,8]
  func @main {
    %y = Attention(@q, @k, @k) {scale = 0.5, precision = f32}
    Save(%y, @y)
  }
})";
  const std::unique_ptr<Executable> executable = loaded(kText);
  ASSERT_NE(executable, nullptr);
  EXPECT_LT(executable->facts().arenaBytes, 256 * 256 * 2 * 4);
}

TEST_P(WholeKernels, LeaveOtherAttentionToItsParts) {
  Module module;
  Builder b(*module.addFunction("f"));
  const Value q = input(b, "q", {1, 2, 5, 4}, ElemKind::Float64);
  EXPECT_FALSE(backend_->supports(*b.attention(q, q, q, {}, {.scale = 1})));
  const Value wide = input(b, "wide", {1, 1, 5, 100000});
  EXPECT_FALSE(backend_->supports(*b.attention(wide, wide, wide, {}, {.precision = ElemKind::Float32})));
}

TEST_P(WholeKernels, ConvolveFewOutputsOfAGroup) {
  struct Case {
    Shape x, filter;
    ConvAttrs attrs;
    bool bias = true;
    ElemKind kind = ElemKind::Float32;
  };
  const Case cases[] = {
      {{2, 5, 9, 11}, {5, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 5}},
      {{1, 3, 20, 37}, {6, 1, 3, 3}, {.strides = {2, 2}, .pads = {0, 0, 1, 1}, .group = 3}},
      {{1, 2, 30, 40}, {2, 1, 5, 5}, {.strides = {1, 3}, .pads = {4, 7, 2, 0}, .dilations = {2, 2}, .group = 2}, false},
      {{1, 4, 7, 7}, {4, 1, 7, 7}, {.pads = {3, 3, 3, 3}, .group = 4}},
      {{1, 1, 300, 3}, {1, 1, 3, 1}, {.pads = {1, 0, 1, 0}, .group = 1}},
      {{1, 7, 30, 21}, {3, 7, 9, 9}, {.pads = {4, 4, 4, 4}}},
      {{2, 6, 12, 13}, {4, 3, 3, 3}, {.strides = {2, 1}, .pads = {1, 0, 1, 2}, .group = 2}, false},
      {{1, 5, 9, 9}, {20, 5, 5, 5}, {.strides = {1, 2}, .pads = {2, 2, 2, 2}, .dilations = {1, 3}}},
      {{2, 9, 7, 7}, {6, 9, 1, 1}, {}},
      {{2, 4, 50}, {8, 1, 31}, {.pads = {15, 15}, .group = 4}},
      {{1, 2, 20000}, {3, 2, 5}, {.strides = {2}, .pads = {0, 4}, .dilations = {2}}},
      {{1, 2, 9000}, {2, 1, 3}, {.pads = {3, 0}, .group = 2}, true, ElemKind::Float16},
      {{2, 3, 5, 6, 7}, {3, 1, 3, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}, .group = 3}},
      {{1, 4, 6, 5, 9}, {2, 4, 2, 3, 1}, {.strides = {2, 1, 2}, .pads = {1, 0, 0, 2, 1, 0}, .dilations = {3, 1, 1}}},
      {{1, 2, 3, 4, 4}, {2, 1, 1, 3, 3}, {.pads = {1, 1, 1, 1, 1, 1}, .group = 2}},  // planes of zeros
      {{1, 3, 4, 5, 6}, {3, 1, 1, 2, 2}, {.strides = {3, 1, 1}, .pads = {0, 0, 0, 5, 0, 0}, .group = 3}, false},
      {{1, 6, 9, 10}, {6, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 6}, true, ElemKind::Float64},
      {{1, 4, 9, 10}, {2, 2, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 2}, true, ElemKind::Int32},
      {{1, 2, 3, 4, 3, 4}, {2, 1, 2, 2, 2, 2}, {.group = 2}},
  };
  uint64_t seed = 1;
  for (const Case& c : cases) {
    SCOPED_TRACE(seed);
    Module module;
    Builder b(*module.addFunction("f"));
    const Value bias = c.bias ? input(b, "bias", {c.filter[0]}, c.kind) : Value{};
    const Value y = b.conv(input(b, "x", c.x, c.kind), input(b, "filter", c.filter, c.kind), bias, c.attrs);
    b.output("y", b.add(b.neg(y), input(b, "other", y.shape(), c.kind)));
    expectSame(b.function(), ++seed, false);
  }
}

TEST_P(WholeKernels, TransformTilesOfWinograd) {
  for (const int tile : {2, 4})
    for (const int64_t height : {4, 9}) {
      SCOPED_TRACE(tile);
      Module module;
      Builder b(*module.addFunction("f"));
      const int64_t channels = 5, outputs = 19;
      Rng rng(static_cast<uint64_t>(tile));
      const Tensor filter = testing_support::randomTensor(rng, Type(ElemKind::Float32, Shape{outputs, channels, 3, 3}));
      const Value y =
          b.winogradConv(input(b, "x", {2, channels, height, 7}), b.constant(winogradFilter(filter, tile, outputs)),
                         {.tile = tile, .pads = {1, 0, 1, 2}, .outputs = outputs});
      b.output("y", b.relu(b.add(y, input(b, "bias", {1, outputs, 1, 1}))));
      expectSame(b.function(), 3, false);
    }
}

}  // namespace

}  // namespace aglow
