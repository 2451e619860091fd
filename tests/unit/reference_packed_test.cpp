// The target operators against Conv and MatMul, on small integers, whose sums are exact in every order.
#include <gtest/gtest.h>

#include "ops/winograd.h"
#include "random_graph.h"
#include "reference_harness.h"

namespace aglow {
namespace {

using Ints = std::vector<int64_t>;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Tensor integers(Random& random, Shape shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  for (int64_t& v : values) v = random.between(-4, 4);
  return Tensor::of(Type(ElemKind::Float32, std::move(shape)), values);
}

// A tensor whose element at a multi-index is given by a function.
template <class At>
Tensor filled(const Shape& shape, const At& at) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    Ints index(static_cast<size_t>(shape.rank()));
    for (int64_t axis = shape.rank() - 1, rest = i; axis >= 0; rest /= shape[static_cast<int>(axis)], --axis)
      index[static_cast<size_t>(axis)] = rest % shape[static_cast<int>(axis)];
    values.push_back(at(index));
  }
  return f32(shape, values);
}

class Reader {
public:
  explicit Reader(const Tensor& t) : values_(t.doubles()), strides_(t.type().shape().strides()) {}
  double operator()(const Ints& index) const {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides_[i];
    return values_[static_cast<size_t>(at)];
  }

private:
  std::vector<double> values_;
  Ints strides_;
};

// [n, c, h, w] in blocks, with a value after the last channel that would show in any sum.
Tensor blocked(const Tensor& x, int64_t lanes) {
  const Shape& s = x.type().shape();
  const Reader from(x);
  return filled({s[0], up(s[1], lanes), s[2], s[3], lanes}, [&](const Ints& i) {
    const int64_t channel = i[1] * lanes + i[4];
    return channel < s[1] ? from({i[0], channel, i[2], i[3]}) : 1e6;
  });
}

Tensor unblocked(const Tensor& x, int64_t channels) {
  const Shape& s = x.type().shape();
  const Reader from(x);
  return filled({s[0], channels, s[2], s[3]},
                [&](const Ints& i) { return from({i[0], i[1] / s[4], i[2], i[3], i[1] % s[4]}); });
}

// Lanes after the last channel have zero filters.
void expectZeroPadding(const Tensor& y, int64_t channels) {
  const Shape& s = y.type().shape();
  const Reader at(y);
  for (int64_t n = 0; n < s[0]; ++n)
    for (int64_t channel = channels; channel < s[1] * s[4]; ++channel)
      EXPECT_EQ(at({n, channel / s[4], s[2] - 1, s[3] - 1, channel % s[4]}), 0);
}

Tensor packedFilter(const Tensor& filter, int64_t lanes) {
  const Shape& s = filter.type().shape();
  const Reader from(filter);
  const int64_t panel = 2 * lanes;
  return filled({up(s[0], panel), s[2], s[3], s[1], panel}, [&](const Ints& i) {
    const int64_t out = i[0] * panel + i[4];
    return out < s[0] ? from({out, i[3], i[1], i[2]}) : 0;
  });
}

template <int kTile>
Tensor winogradFilter(const Tensor& filter, int64_t lanes) {
  const Shape& s = filter.type().shape();
  const Reader from(filter);
  const int64_t panel = 2 * lanes;
  constexpr int kPoints = (kTile + 2) * (kTile + 2);
  return filled({kPoints, up(s[0], panel), s[1], panel}, [&](const Ints& i) {
    const int64_t out = i[1] * panel + i[3];
    double taps[9], points[kPoints];
    for (int64_t t = 0; t < 9; ++t) taps[t] = out < s[0] ? from({out, i[2], t / 3, t % 3}) : 0;
    winograd::transform2d(winograd::Transform<kTile>::kFilter, taps, points);
    return points[i[0]];
  });
}

struct ConvCase {
  Tensor x, filter;
  Attrs attrs = attrsOf("Conv");
  int64_t lanes = 4, channels = 1, outputs = 1;
};

ConvCase drawCase(Random& random, int64_t group, int64_t perGroup, int64_t outPerGroup, int64_t kernelHeight,
                  int64_t kernelWidth) {
  ConvCase c;
  c.channels = group * perGroup;
  c.outputs = group * outPerGroup;
  c.x = integers(random, {random.between(1, 2), c.channels, random.between(kernelHeight + 2, 9),
                          random.between(kernelWidth + 2, 9)});
  c.filter = integers(random, {c.outputs, perGroup, kernelHeight, kernelWidth});
  c.attrs.set("group", group);
  c.attrs.set("pads", Ints{random.between(0, 1), random.between(0, 2), random.between(0, 1), random.between(0, 2)});
  return c;
}

void drawSteps(Random& random, ConvCase& c) {
  c.attrs.set("strides", Ints{random.between(1, 2), random.between(1, 3)});
  if (c.filter.type().dim(2) <= 2) c.attrs.set("dilations", Ints{random.between(1, 2), random.between(1, 2)});
}

// The attributes of another operator, as far as it has them.
Attrs attrsLike(const ConvCase& c, std::string_view op) {
  Attrs attrs = attrsOf(op);
  for (const std::string_view name : {"strides", "pads", "dilations", "group"})
    if (attrs.indexOf(name) >= 0) attrs.set(name, c.attrs.at(c.attrs.indexOf(name)));
  if (attrs.indexOf("outputs") >= 0) attrs.set("outputs", c.outputs).set("lanes", c.lanes);
  return attrs;
}

TEST(PackedMatMul, IsMatMul) {
  Random random(1);
  for (int round = 0; round < 30; ++round) {
    const int64_t k = random.between(0, 20), n = random.between(1, 40), panel = 2 * random.between(1, 8);
    const Shape shape = round % 2 == 0 ? Shape{random.between(0, 5), k} : Shape{2, random.between(1, 3), k};
    const Tensor a = integers(random, shape), b = integers(random, {k, n});
    const Reader from(b);
    const Tensor packed = filled({up(n, panel), k, panel}, [&](const Ints& i) {
      const int64_t column = i[0] * panel + i[2];
      return column < n ? from({i[1], column}) : 0;
    });
    EXPECT_EQ(runOne(attrsOf("PackedMatMul").set("n", n), {a, packed}), runOne("MatMul", {a, b}));
  }
}

TEST(TransposedMatMul, IsMatMul) {
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    const int64_t k = random.between(0, 9), m = random.between(0, 9), n = random.between(0, 9);
    const bool many = round % 2 == 0;
    const Tensor a = integers(random, many ? Shape{2, 3, k, m} : Shape{k, m});
    const Tensor b = integers(random, many ? Shape{2, 3, k, n} : Shape{k, n});
    const Tensor turned = runOne(attrsOf("Transpose").set("perm", many ? Ints{0, 1, 3, 2} : Ints{1, 0}), {a});
    EXPECT_EQ(runOne("TransposedMatMul", {a, b}), runOne("MatMul", {turned, b}));
  }
}

// A convolution of the image by a map, both with batch and channels exchanged, where steps and dilations change places.
TEST(TapProducts, AreConvOfExchangedMaps) {
  Random random(12);
  const Attrs exchange = attrsOf("Transpose").set("perm", Ints{1, 0, 2, 3});
  for (int round = 0; round < 40; ++round) {
    const int64_t channels = random.between(1, 11), outputs = random.between(1, 11), lanes = random.pick(Ints{1, 4, 8});
    const Ints steps{random.between(1, 2), random.between(1, 3)}, dilations{random.between(1, 2), random.between(1, 2)};
    const Ints pads{random.between(0, 1), random.between(0, 2), random.between(0, 1), random.between(0, 2)};
    const Ints map{random.between(1, 3), random.between(1, 3)}, kernel{random.between(1, 3), random.between(1, 3)};
    Ints extents;
    for (size_t a = 0; a < 2; ++a)
      extents.push_back(
          std::max<int64_t>((map[a] - 1) * steps[a] + (kernel[a] - 1) * dilations[a] + 1 - pads[a] - pads[2 + a], 1));
    const Tensor x = integers(random, {2, channels, extents[0], extents[1]});
    const Tensor g = integers(random, {2, outputs, map[0], map[1]});
    const Attrs conv = attrsOf("Conv").set("strides", dilations).set("dilations", steps).set("pads", pads);
    const Tensor expected = runOne(conv, {runOne(exchange, {x}), runOne(exchange, {g})});
    const Shape& found = expected.type().shape();
    const Attrs attrs = attrsOf("TapProducts")
                            .set("kernel", Ints{found[2], found[3]})
                            .set("strides", steps)
                            .set("dilations", dilations)
                            .set("pads", pads)
                            .set("channels", channels);
    const Tensor y = runOne(attrs, {round % 4 == 0 ? x : blocked(x, lanes), blocked(g, lanes)});
    const Reader from(y);
    const int64_t panel = 2 * lanes;
    EXPECT_EQ(filled(found, [&](const Ints& i) { return from({i[1] / panel, i[2], i[3], i[0], i[1] % panel}); }),
              expected);
  }
}

TEST(BlockedConv, IsConv) {
  Random random(2);
  for (int round = 0; round < 40; ++round) {
    ConvCase c =
        drawCase(random, 1, random.between(1, 11), random.between(1, 20), random.between(1, 3), random.between(1, 3));
    c.lanes = random.pick(Ints{1, 4, 8});
    drawSteps(random, c);
    const bool planar = round % 4 == 0;
    const Tensor y =
        runOne(attrsLike(c, "BlockedConv"), {planar ? c.x : blocked(c.x, c.lanes), packedFilter(c.filter, c.lanes)});
    EXPECT_EQ(unblocked(y, c.outputs), runOne(c.attrs, {c.x, c.filter}));
    expectZeroPadding(y, c.outputs);
  }
}

TEST(ChannelsLastConv, IsConv) {
  Random random(6);
  for (int round = 0; round < 20; ++round) {
    ConvCase c =
        drawCase(random, 1, random.between(1, 11), random.between(1, 20), random.between(1, 3), random.between(1, 3));
    drawSteps(random, c);
    const Tensor filter = runOne(attrsOf("Transpose").set("perm", Ints{0, 2, 3, 1}), {c.filter});
    const Tensor bias = integers(random, {c.outputs}), x = round % 4 == 0 ? c.x : blocked(c.x, c.channels);
    const Attrs attrs = attrsLike(c, "ChannelsLastConv");
    EXPECT_EQ(unblocked(runOne(attrs, {x, filter, bias}), c.outputs), runOne(c.attrs, {c.x, c.filter, bias}));
    EXPECT_EQ(unblocked(runOne(attrs, {x, filter}), c.outputs), runOne(c.attrs, {c.x, c.filter}));
  }
}

TEST(BlockedConv, HasGroupsOfWholeBlocks) {
  Random random(3);
  for (int round = 0; round < 10; ++round) {
    const int64_t lanes = random.pick(Ints{2, 4});
    ConvCase c = drawCase(random, random.between(2, 3), lanes * random.between(1, 2), 2 * lanes * random.between(1, 2),
                          random.between(1, 3), 2);
    c.lanes = lanes;
    drawSteps(random, c);
    const Tensor y = runOne(attrsLike(c, "BlockedConv"), {blocked(c.x, lanes), packedFilter(c.filter, lanes)});
    EXPECT_EQ(unblocked(y, c.outputs), runOne(c.attrs, {c.x, c.filter}));
  }
}

TEST(DepthwiseConv, IsConvInGroupsThatFillNoBlock) {
  Random random(4);
  for (int round = 0; round < 20; ++round) {
    const int64_t members = random.pick(Ints{1, 1, 2, 4});
    ConvCase c = drawCase(random, random.between(1, 20), members, members, random.between(1, 3), random.between(1, 3));
    c.lanes = random.pick(Ints{members, 4, 8});
    drawSteps(random, c);
    const Shape& s = c.filter.type().shape();
    const Reader from(c.filter);
    const Tensor filter = filled({up(s[0], c.lanes), s[2], s[3], members, c.lanes}, [&](const Ints& i) {
      const int64_t channel = i[0] * c.lanes + i[4];
      return channel < s[0] ? from({channel, i[3], i[1], i[2]}) : 0;
    });
    const Tensor y = runOne(attrsLike(c, "DepthwiseConv"), {blocked(c.x, c.lanes), filter});
    EXPECT_EQ(unblocked(y, c.outputs), runOne(c.attrs, {c.x, c.filter}));
    expectZeroPadding(y, c.outputs);
  }
}

template <int kTile>
void expectWinogradIsConv(uint64_t seed) {
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    ConvCase c = drawCase(random, 1, random.between(1, 9), random.between(1, 18), 3, 3);
    c.lanes = random.pick(Ints{1, 4, 8});
    const Tensor y = runOne(attrsLike(c, "WinogradConv").set("tile", kTile),
                            {blocked(c.x, c.lanes), winogradFilter<kTile>(c.filter, c.lanes)});
    const std::vector<double> actual = unblocked(y, c.outputs).doubles();
    const std::vector<double> expected = runOne(c.attrs, {c.x, c.filter}).doubles();
    ASSERT_EQ(actual.size(), expected.size());
    // The transformed filter is rounded to f32.
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-3);
    expectZeroPadding(y, c.outputs);
  }
}

TEST(WinogradConv, IsConvInTilesOf2) { expectWinogradIsConv<2>(5); }
TEST(WinogradConv, IsConvInTilesOf4) { expectWinogradIsConv<4>(6); }

}  // namespace
}  // namespace aglow
