// The target operators on blocked channels and packed weights, computed in double, or in i32 where they are of bytes.
#include <algorithm>
#include <bit>

#include "ops/winograd.h"
#include "reference/arithmetic.h"
#include "reference/reference.h"
#include "reference/window_runs.h"

namespace aglow::reference {

namespace {

// y += x * rows for `depth` rows of `width`.
void addProducts(const double* x, const float* rows, int64_t depth, int64_t width, double* y) {
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t j = 0; j < width; ++j) y[j] += x[k] * double{rows[k * width + j]};
}

// Blocked channels, or the channels of a planar image as blocks of one.
struct Blocks {
  int64_t count = 0, height = 0, width = 0, lanes = 1;

  explicit Blocks(const Shape& s) : count(s[1]), height(s[2]), width(s[3]), lanes(s.rank() == 5 ? s[4] : 1) {}
  int64_t plane() const { return height * width; }
  int64_t item() const { return count * plane() * lanes; }
  // The first element of a channel; the others follow in steps of `lanes`.
  int64_t start(int64_t channel) const { return channel / lanes * plane() * lanes + channel % lanes; }
};

// One channel after the other, from blocks to planes of doubles and back.
void unblock(const Blocks& blocks, const float* from, int64_t channels, double* to) {
  for (int64_t ch = 0; ch < channels; ++ch)
    for (int64_t i = 0; i < blocks.plane(); ++i)
      to[ch * blocks.plane() + i] = from[blocks.start(ch) + i * blocks.lanes];
}
void block(const Blocks& blocks, const double* plane, int64_t channel, float* to) {
  for (int64_t i = 0; i < blocks.plane(); ++i)
    to[blocks.start(channel) + i * blocks.lanes] = static_cast<float>(plane[i]);
}

// A convolution in which result channel `out` is the sum over `depth` channels of x from firstChannel(out) on, with
// weights that weightsOf(out, weights) writes as [depth, tap].
template <class FirstChannel, class WeightsOf>
void convolve(const KernelCall& call, const Window& window, int64_t channels, int64_t depth,
              const FirstChannel& firstChannel, const WeightsOf& weightsOf) {
  const Blocks in(call.inType(0).shape());
  const Blocks out(call.outType().shape());
  const std::vector<WindowRun> runs = windowRuns(window, {in.height, in.width}, {out.height, out.width});
  const int64_t taps = planeSize(window.kernel);
  std::vector<double> item(static_cast<size_t>(channels * in.plane()));
  std::vector<double> weights(static_cast<size_t>(depth * taps));
  std::vector<double> plane(static_cast<size_t>(out.plane()));
  for (int64_t n = 0; n < call.inType(0).dim(0); ++n) {
    unblock(in, call.in[0].as<float>() + n * in.item(), channels, item.data());
    for (int64_t o = 0; o < out.count * out.lanes; ++o) {
      weightsOf(o, weights.data());
      std::fill(plane.begin(), plane.end(), 0.0);
      for (int64_t ch = 0; ch < depth; ++ch)
        addTaps(runs, window.strides.back(), weights.data() + ch * taps,
                item.data() + (firstChannel(o) + ch) * in.plane(), plane.data());
      block(out, plane.data(), o, call.out[0].as<float>() + n * out.item());
    }
  }
}

}  // namespace

Status packedMatMul(const KernelCall& call) {
  const Shape& a = call.inType(0).shape();
  const int64_t panels = call.inType(1).dim(0);
  const int64_t k = call.inType(1).dim(1);
  const int64_t panel = call.inType(1).dim(2);
  const int64_t n = call.attrs.integer("n");
  const int64_t rows = Shape(std::vector(a.dims().begin(), a.dims().end() - 1)).elements();
  std::vector<double> row(static_cast<size_t>(k));
  std::vector<double> sums(static_cast<size_t>(panel));
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(call.in[0].as<float>() + i * k, k, row.begin());
      std::fill(sums.begin(), sums.end(), 0.0);
      addProducts(row.data(), call.in[1].as<float>() + p * k * panel, k, panel, sums.data());
      for (int64_t j = 0; j < std::min(panel, n - p * panel); ++j)
        call.out[0].as<float>()[i * n + p * panel + j] = static_cast<float>(sums[static_cast<size_t>(j)]);
    }
  return {};
}

Status transposedMatMul(const KernelCall& call) {
  const Shape &a = call.inType(0).shape(), &y = call.outType().shape();
  const int64_t k = a[a.rank() - 2], m = y[y.rank() - 2], n = y[y.rank() - 1];
  const int64_t matrices = m * n == 0 ? 0 : y.elements() / (m * n);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    const float *left = call.in[0].as<float>() + matrix * k * m, *right = call.in[1].as<float>() + matrix * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t c = 0; c < k; ++c) sum += double{left[c * m + i]} * double{right[c * n + j]};
        call.out[0].as<float>()[(matrix * m + i) * n + j] = static_cast<float>(sum);
      }
  }
  return {};
}

Status tapProducts(const KernelCall& call) {
  AGLOW_TRY(const Window window, windowOf(call.attrs, call.attrs.ints("kernel")));
  const Blocks x(call.inType(0).shape()), g(call.inType(1).shape());
  const int64_t channels = call.attrs.integer("channels"), outputs = g.count * g.lanes;
  const int64_t images = call.inType(0).dim(0), panel = 2 * g.lanes;
  // One weight: all places at which its tap meets the image.
  const auto sumOf = [&](int64_t o, int64_t ch, int64_t ky, int64_t kx) {
    double sum = 0;
    for (int64_t n = 0; n < images; ++n)
      for (int64_t row = 0; row < g.height; ++row)
        for (int64_t column = 0; column < g.width; ++column) {
          const int64_t top = row * window.strides[0] - window.before[0] + ky * window.dilations[0];
          const int64_t left = column * window.strides[1] - window.before[1] + kx * window.dilations[1];
          if (top < 0 || top >= x.height || left < 0 || left >= x.width) continue;
          sum += double{call.in[0].as<float>()[n * x.item() + x.start(ch) + (top * x.width + left) * x.lanes]} *
                 double{call.in[1].as<float>()[n * g.item() + g.start(o) + (row * g.width + column) * g.lanes]};
        }
    return static_cast<float>(sum);
  };
  auto* y = call.out[0].as<float>();
  for (int64_t p = 0; p < call.outType().dim(0); ++p)
    for (int64_t ky = 0; ky < window.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < window.kernel[1]; ++kx)
        for (int64_t ch = 0; ch < channels; ++ch)
          for (int64_t o = p * panel; o < (p + 1) * panel; ++o) *y++ = o < outputs ? sumOf(o, ch, ky, kx) : 0;
  return {};
}

Status blockMatMul(const KernelCall& call) {
  constexpr int64_t kByteBits = 8, kWordBytes = 4;
  const Shape& a = call.inType(0).shape();
  const int64_t k = a[a.rank() - 1], n = call.attrs.integer("n"),
                rows = call.outType().elements() / std::max<int64_t>(n, 1);
  const int64_t bits = call.attrs.integer("bits"), block = call.attrs.integer("block");
  const int64_t words = call.inType(1).dim(1), panel = call.inType(1).dim(2), blocks = call.inType(2).dim(1);
  const bool one = call.inType(3).elements() == 1;
  const auto* levels = call.in[1].as<uint8_t>();
  std::vector<double> column(static_cast<size_t>(k));
  for (int64_t j = 0; j < n; ++j) {
    const int64_t first = j / panel;
    for (int64_t c = 0; c < k; ++c) {
      const int64_t word = (first * words + c * bits / (kWordBytes * kByteBits)) * panel + j % panel;
      const int64_t bit = c * bits % (kWordBytes * kByteBits);
      const int level = levels[word * kWordBytes + bit / kByteBits] >> bit % kByteBits & ((1 << bits) - 1);
      const int64_t at = (first * blocks + c / block) * panel + j % panel;
      const double offset{call.in[3].as<float>()[one ? 0 : at]}, scale{call.in[2].as<float>()[at]};
      column[static_cast<size_t>(c)] = (level - offset) * scale;
    }
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t c = 0; c < k; ++c) sum += double{call.in[0].as<float>()[i * k + c]} * column[static_cast<size_t>(c)];
      call.out[0].as<float>()[i * n + j] = static_cast<float>(sum);
    }
  }
  return {};
}

Status blockedConv(const KernelCall& call) {
  const Shape& filter = call.inType(1).shape();
  const int64_t taps = filter[1] * filter[2];
  const int64_t depth = filter[3];
  const int64_t panel = filter[4];
  const int64_t group = call.attrs.integer("group");
  const int64_t perGroup = call.attrs.integer("outputs") / group;
  AGLOW_TRY(const Window window, windowOf(call.attrs, {filter[1], filter[2]}));
  // Lanes after the last channel belong to the last group, which is the only one that may have such.
  const auto firstChannel = [&](int64_t o) { return std::min(o / perGroup, group - 1) * depth; };
  convolve(call, window, group * depth, depth, firstChannel, [&](int64_t o, double* weights) {
    const float* from = call.in[1].as<float>() + o / panel * taps * depth * panel + o % panel;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t ch = 0; ch < depth; ++ch) weights[ch * taps + tap] = from[(tap * depth + ch) * panel];
  });
  return {};
}

Status channelsLastConv(const KernelCall& call) {
  const Shape& filter = call.inType(1).shape();
  const ElemKind kind = call.outType().kind();
  const int64_t outputs = filter[0], taps = filter[1] * filter[2], channels = filter[3];
  AGLOW_TRY(const Window window, windowOf(call.attrs, {filter[1], filter[2]}));
  const Blocks in(call.inType(0).shape()), out(call.outType().shape());
  const std::vector<WindowRun> runs = windowRuns(window, {in.height, in.width}, {out.height, out.width});
  std::vector<double> weights(static_cast<size_t>(filter.elements())), item(static_cast<size_t>(in.item()));
  std::vector<double> image(static_cast<size_t>(in.plane())), plane(static_cast<size_t>(out.plane()));
  std::vector<double> result(static_cast<size_t>(out.item())), tapWeights(static_cast<size_t>(taps));
  widen(kind, call.inData(1), 0, filter.elements(), 1, weights.data());
  std::vector<double> bias(static_cast<size_t>(outputs));
  if (call.has(2)) widen(kind, call.inData(2), 0, outputs, 1, bias.data());
  for (int64_t n = 0; n < call.inType(0).dim(0); ++n) {
    widen(kind, call.inData(0), n * in.item(), in.item(), 1, item.data());
    for (int64_t o = 0; o < outputs; ++o) {
      std::fill(plane.begin(), plane.end(), bias[static_cast<size_t>(o)]);
      for (int64_t ch = 0; ch < channels; ++ch) {
        for (int64_t i = 0; i < in.plane(); ++i)
          image[static_cast<size_t>(i)] = item[static_cast<size_t>(in.start(ch) + i * in.lanes)];
        for (int64_t tap = 0; tap < taps; ++tap)
          tapWeights[static_cast<size_t>(tap)] = weights[static_cast<size_t>((o * taps + tap) * channels + ch)];
        addTaps(runs, window.strides.back(), tapWeights.data(), image.data(), plane.data());
      }
      for (int64_t i = 0; i < out.plane(); ++i)
        result[static_cast<size_t>(out.start(o) + i * out.lanes)] = plane[static_cast<size_t>(i)];
    }
    narrow(kind, result.data(), out.item(), call.outData(), n * out.item());
  }
  return {};
}

Status depthwiseConv(const KernelCall& call) {
  const Shape& filter = call.inType(1).shape();
  const int64_t taps = filter[1] * filter[2];
  const int64_t members = filter[3];
  const int64_t lanes = filter[4];
  AGLOW_TRY(const Window window, windowOf(call.attrs, {filter[1], filter[2]}));
  const auto firstChannel = [&](int64_t o) { return o / members * members; };
  convolve(call, window, filter[0] * lanes, members, firstChannel, [&](int64_t o, double* weights) {
    const float* from = call.in[1].as<float>() + o / lanes * taps * members * lanes + o % lanes;
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t ch = 0; ch < members; ++ch) weights[ch * taps + tap] = from[(tap * members + ch) * lanes];
  });
  return {};
}

namespace {

// Products of bytes. Sums wrap, as those of i32 do.
struct ByteProducts {
  using X = uint8_t;
  using W = int8_t;
  using Y = int32_t;
  using Sum = uint32_t;
  static constexpr int64_t kTogether = 4;

  static Sum product(X x, W w) { return static_cast<Sum>(x * w); }
};

// Products of bf16, which are the upper halves of f32.
struct HalfProducts {
  using X = uint16_t;
  using W = uint16_t;
  using Y = float;
  using Sum = double;
  static constexpr int64_t kTogether = 2;

  static double widened(uint16_t half) { return double{std::bit_cast<float>(static_cast<uint32_t>(half) << 16)}; }
  static Sum product(X x, W w) { return widened(x) * widened(w); }
};

// Channel `c` of column `j` in panels of `panel` columns, `groups` groups of channels deep.
template <class P>
typename P::W weightOf(const typename P::W* panels, int64_t groups, int64_t panel, int64_t c, int64_t j) {
  constexpr int64_t kTogether = P::kTogether;
  return panels[((j / panel * groups + c / kTogether) * panel + j % panel) * kTogether + c % kTogether];
}

template <class P>
Status multiplyNarrow(const KernelCall& call) {
  const Shape &a = call.inType(0).shape(), &b = call.inType(1).shape();
  const int64_t k = a[a.rank() - 1], n = call.attrs.integer("n"), rows = call.outType().elements() / n;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < n; ++j) {
      typename P::Sum sum = 0;
      for (int64_t c = 0; c < k; ++c)
        sum += P::product(call.in[0].as<typename P::X>()[i * k + c],
                          weightOf<P>(call.in[1].as<typename P::W>(), b[1], b[2], c, j));
      call.out[0].as<typename P::Y>()[i * n + j] = static_cast<typename P::Y>(sum);
    }
  return {};
}

}  // namespace

Status narrowMatMul(const KernelCall& call) {
  return call.inType(0).kind() == ElemKind::UInt8 ? multiplyNarrow<ByteProducts>(call)
                                                  : multiplyNarrow<HalfProducts>(call);
}

namespace {

// Sums over windows of blocked elements: channel o of the result reads `depth` channels from first(o) on, each with
// weight(o, tap, channel of those).
template <class P, class First, class Weight>
void convolveNarrow(const KernelCall& call, const Window& window, int64_t outputs, int64_t depth, First first,
                    Weight weight) {
  const Blocks in(call.inType(0).shape()), out(call.outType().shape());
  const auto outside = static_cast<typename P::X>(call.attrs.integer("outside"));
  const int64_t kw = window.kernel[1];
  const auto sumAt = [&](const typename P::X* x, int64_t o, int64_t y, int64_t column) {
    typename P::Sum sum = 0;
    for (int64_t tap = 0; tap < window.kernel[0] * kw; ++tap) {
      const int64_t row = y * window.strides[0] - window.before[0] + tap / kw * window.dilations[0];
      const int64_t at = column * window.strides[1] - window.before[1] + tap % kw * window.dilations[1];
      const bool inside = row >= 0 && row < in.height && at >= 0 && at < in.width;
      for (int64_t c = 0; c < depth; ++c) {
        const typename P::X value = inside ? x[in.start(first(o) + c) + (row * in.width + at) * in.lanes] : outside;
        sum += P::product(value, weight(o, tap, c));
      }
    }
    return static_cast<typename P::Y>(sum);
  };
  for (int64_t n = 0; n < call.inType(0).dim(0); ++n)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < out.plane(); ++i)
        call.out[0].as<typename P::Y>()[n * out.item() + out.start(o) + i * out.lanes] =
            sumAt(call.in[0].as<typename P::X>() + n * in.item(), o, i / out.width, i % out.width);
}

template <class P>
Status convolveChannels(const KernelCall& call) {
  const Shape& filter = call.inType(1).shape();
  const int64_t taps = filter[1] * filter[2], groups = filter[3], panel = filter[4], depth = groups * P::kTogether;
  const int64_t outputs = call.attrs.integer("outputs"), each = outputs / call.attrs.integer("group");
  AGLOW_TRY(const Window window, windowOf(call.attrs, {filter[1], filter[2]}));
  convolveNarrow<P>(
      call, window, outputs, depth, [&](int64_t o) { return o / each * depth; },
      [&](int64_t o, int64_t tap, int64_t c) {
        // The panel of an output holds all taps one after the other.
        const auto* panels = call.in[1].as<typename P::W>() + (o / panel * taps + tap) * depth * panel;
        return weightOf<P>(panels, groups, panel, c, o % panel);
      });
  return {};
}

}  // namespace

Status narrowConv(const KernelCall& call) {
  return call.inType(0).kind() == ElemKind::UInt8 ? convolveChannels<ByteProducts>(call)
                                                  : convolveChannels<HalfProducts>(call);
}

Status byteDepthwiseConv(const KernelCall& call) {
  const Shape& filter = call.inType(1).shape();
  const int64_t taps = filter[1] * filter[2], lanes = filter[3];
  AGLOW_TRY(const Window window, windowOf(call.attrs, {filter[1], filter[2]}));
  convolveNarrow<ByteProducts>(
      call, window, filter[0] * lanes, 1, [](int64_t o) { return o; },
      [&](int64_t o, int64_t tap, int64_t) {
        return call.in[1].as<int8_t>()[(o / lanes * taps + tap) * lanes + o % lanes];
      });
  return {};
}

namespace {

template <int kTile>
class Winograd {
public:
  explicit Winograd(const KernelCall& call)
      : call_(call),
        in_(call.inType(0).shape()),
        out_(call.outType().shape()),
        channels_(call.inType(1).dim(2)),
        tilesDown_((out_.height + kTile - 1) / kTile),
        tilesAcross_((out_.width + kTile - 1) / kTile) {}

  void run(const Window& window) {
    std::vector<double> item(static_cast<size_t>(channels_ * in_.plane()));
    std::vector<double> plane(static_cast<size_t>(out_.plane()));
    for (int64_t n = 0; n < call_.inType(0).dim(0); ++n) {
      unblock(in_, call_.in[0].as<float>() + n * in_.item(), channels_, item.data());
      transformInput(item, window);
      multiply();
      for (int64_t o = 0; o < out_.count * out_.lanes; ++o) {
        transformOutput(o, plane);
        block(out_, plane.data(), o, call_.out[0].as<float>() + n * out_.item());
      }
    }
  }

private:
  static constexpr int kSide = kTile + 2;

  int64_t tiles() const { return tilesDown_ * tilesAcross_; }

  // [point, tile, channel]
  void transformInput(const std::vector<double>& item, const Window& window) {
    inputs_.assign(static_cast<size_t>(kSide * kSide * tiles() * channels_), 0.0);
    for (int64_t tile = 0; tile < tiles(); ++tile)
      for (int64_t ch = 0; ch < channels_; ++ch) {
        double patch[kSide * kSide] = {};
        for (int64_t r = 0; r < kSide; ++r)
          for (int64_t c = 0; c < kSide; ++c) {
            const int64_t y = tile / tilesAcross_ * kTile + r - window.before[0];
            const int64_t x = tile % tilesAcross_ * kTile + c - window.before[1];
            if (y < 0 || y >= in_.height || x < 0 || x >= in_.width) continue;
            patch[r * kSide + c] = item[static_cast<size_t>(ch * in_.plane() + y * in_.width + x)];
          }
        double points[kSide * kSide];
        winograd::transform2d(winograd::Transform<kTile>::kInput, patch, points);
        for (int64_t p = 0; p < kSide * kSide; ++p)
          inputs_[static_cast<size_t>((p * tiles() + tile) * channels_ + ch)] = points[p];
      }
  }

  // At every point, the tiles' channels by the filter; [point, tile, result's channel up to the last panel].
  void multiply() {
    const int64_t panels = call_.inType(1).dim(1);
    const int64_t panel = call_.inType(1).dim(3);
    width_ = panels * panel;
    products_.assign(static_cast<size_t>(kSide * kSide * tiles() * width_), 0.0);
    for (int64_t p = 0; p < kSide * kSide; ++p)
      for (int64_t block = 0; block < panels; ++block)
        for (int64_t tile = 0; tile < tiles(); ++tile)
          addProducts(inputs_.data() + (p * tiles() + tile) * channels_,
                      call_.in[1].as<float>() + (p * panels + block) * channels_ * panel, channels_, panel,
                      products_.data() + (p * tiles() + tile) * width_ + block * panel);
  }

  void transformOutput(int64_t channel, std::vector<double>& plane) {
    for (int64_t tile = 0; tile < tiles(); ++tile) {
      double points[kSide * kSide];
      double results[kTile * kTile];
      for (int64_t p = 0; p < kSide * kSide; ++p)
        points[p] = products_[static_cast<size_t>((p * tiles() + tile) * width_ + channel)];
      winograd::transform2d(winograd::Transform<kTile>::kOutput, points, results);
      const int64_t top = tile / tilesAcross_ * kTile;
      const int64_t left = tile % tilesAcross_ * kTile;
      for (int64_t r = 0; r < std::min<int64_t>(kTile, out_.height - top); ++r)
        for (int64_t c = 0; c < std::min<int64_t>(kTile, out_.width - left); ++c)
          plane[static_cast<size_t>((top + r) * out_.width + left + c)] = results[r * kTile + c];
    }
  }

  const KernelCall& call_;
  Blocks in_, out_;
  int64_t channels_, tilesDown_, tilesAcross_, width_ = 0;
  std::vector<double> inputs_, products_;
};

}  // namespace

Status winogradConv(const KernelCall& call) {
  AGLOW_TRY(const Window window, windowOf(call.attrs, {3, 3}));
  if (call.attrs.integer("tile") == 2)
    Winograd<2>(call).run(window);
  else
    Winograd<4>(call).run(window);
  return {};
}

}  // namespace aglow::reference
