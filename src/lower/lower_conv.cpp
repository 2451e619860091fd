// A transposed convolution is a convolution with steps of 1, of which there are two. Results a stride apart see the
// same places of the input through other taps: the phases of a stride are channels of one convolution over the input,
// and take their places afterwards. Where dilations lie badly for that, the input is spread by zeros, and the filter
// turned. A divisor of both stride and dilation spreads the result instead.
#include <algorithm>
#include <numeric>

#include "graph/op_views.h"
#include "lower/rules.h"
#include "ops/axes.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow::lowering {

namespace {

// Every element of the spatial axes followed by stride - 1 zeros.
Value spread(Builder& b, Value x, const std::vector<int64_t>& strides) {
  if (std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; })) return x;
  std::vector<int64_t> split{x.dim(0), x.dim(1)}, after{0, 0}, joined = split;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t extent = x.dim(static_cast<int>(i) + 2);
    split.insert(split.end(), {extent, 1});
    after.insert(after.end(), {0, strides[i] - 1});
    joined.push_back(extent * strides[i]);
  }
  const std::vector<int64_t> none(after.size(), 0);
  const Value padded = b.pad(b.reshaped(x, split), b.scalarLike(x, 0), {.before = none, .after = after});
  return b.reshaped(padded, joined);
}

// [in, out / group, kernel...] with every kernel axis turned, as the filter [out, in / group, kernel...].
Value turned(Builder& b, Value filter, int64_t group) {
  const std::vector<int64_t>& dims = filter.shape().dims();
  const size_t rank = dims.size();
  SliceAttrs reverse{.starts = std::vector<int64_t>(rank, 0), .sizes = dims, .steps = std::vector<int64_t>(rank, 1)};
  for (size_t axis = 2; axis < rank; ++axis) {
    reverse.starts[axis] = dims[axis] - 1;
    reverse.steps[axis] = -1;
  }
  std::vector<int64_t> grouped{group, dims[0] / group, dims[1]}, perm{0, 2, 1},
      joined{group * dims[1], dims[0] / group};
  for (size_t axis = 2; axis < rank; ++axis) {
    grouped.push_back(dims[axis]);
    perm.push_back(static_cast<int64_t>(axis) + 1);
    joined.push_back(dims[axis]);
  }
  return b.reshaped(b.transposed(b.reshaped(b.slice(filter, reverse), grouped), perm), joined);
}

// Cuts -n elements where a pad is negative, and makes it 0. Where x is shorter, the pad on the other side gives the
// rest.
Value cropped(Builder& b, Value x, std::vector<int64_t>& pads) {
  const size_t axes = pads.size() / 2;
  std::vector<int64_t> starts(axes + 2, 0), sizes = x.shape().dims();
  for (size_t i = 0; i < axes; ++i) {
    int64_t &front = pads[i], &back = pads[axes + i], &size = sizes[i + 2];
    const auto cut = [&size](int64_t& pad, int64_t& other) {
      const int64_t count = std::clamp<int64_t>(-pad, 0, size);
      size -= count;
      pad += count;
      other += std::min<int64_t>(pad, 0);
      pad = std::max<int64_t>(pad, 0);
      return count;
    };
    starts[i + 2] = cut(front, back);
    cut(back, front);
  }
  return sizes == x.shape().dims() ? x : b.slice(x, {.starts = starts, .sizes = sizes});
}

// Along one spatial axis: result q * stride + phase - cut is the sum over all tap groups j of input q - j, by tap
// j * stride + phase of a filter with `front` zeros before it and more after it, so that the groups are whole.
struct Phases {
  int64_t stride, taps, groups, front, cut;
  int64_t before, after, places;  // the convolution's pads, which may cut, and its results

  Phases(const Window& window, size_t axis, int64_t input, int64_t result)
      : stride(window.strides[axis]),
        taps(window.reach(static_cast<int>(axis))),
        groups(ceilDiv(taps, stride)),
        front(std::min((stride - window.before[axis] % stride) % stride, groups * stride - taps)),
        cut((window.before[axis] + front) % stride),
        before(groups - 1 - (window.before[axis] + front) / stride),
        after(0),
        places(ceilDiv(result + cut, stride)) {
    after = places - input - before + groups - 1;
  }
};

using AllPhases = std::vector<Phases>;

// Zeros between the taps, so that their distance is 1.
Value undilated(Builder& b, Value filter, const std::vector<int64_t>& dilations) {
  std::vector<int64_t> sizes = filter.shape().dims();
  for (size_t i = 0; i < dilations.size(); ++i) sizes[i + 2] = (sizes[i + 2] - 1) * dilations[i] + 1;
  if (sizes == filter.shape().dims()) return filter;
  return b.slice(spread(b, filter, dilations), {.starts = std::vector<int64_t>(sizes.size(), 0), .sizes = sizes});
}

// [in, out / group, kernel...] as [group, out / group, phases..., in / group, groups...] with the tap groups turned.
Value phaseFilter(Builder& b, Value filter, const AllPhases& phases, int64_t group) {
  const int64_t in = filter.dim(0) / group, out = filter.dim(1);
  const auto axes = static_cast<int64_t>(phases.size());
  std::vector<int64_t> front{0, 0}, back{0, 0}, split{group, in, out};
  std::vector<int64_t> perm{0, 2};
  for (int64_t a = 0; a < axes; ++a) {
    const Phases& p = phases[static_cast<size_t>(a)];
    front.push_back(p.front);
    back.push_back(p.groups * p.stride - p.taps - p.front);
    split.insert(split.end(), {p.groups, p.stride});
    perm.push_back(4 + 2 * a);
  }
  perm.push_back(1);
  for (int64_t a = 0; a < axes; ++a) perm.push_back(3 + 2 * a);
  const Value whole = b.pad(filter, b.scalarLike(filter, 0), {.before = front, .after = back});
  const Value grouped = b.reshaped(whole, split);
  SliceAttrs reverse{
      .starts = std::vector<int64_t>(split.size(), 0), .sizes = split, .steps = std::vector<int64_t>(split.size(), 1)};
  for (size_t a = 3; a < split.size(); a += 2) {
    reverse.starts[a] = split[a] - 1;
    reverse.steps[a] = -1;
  }
  return b.transposed(b.slice(grouped, reverse), perm);
}

// One value for all phases of a channel, or all phases of the channels in turn.
Value phaseBias(Builder& b, Value bias, int64_t phases, bool phasesFirst) {
  const int64_t channels = bias.dim(0);
  const std::vector<int64_t> one = phasesFirst ? std::vector<int64_t>{1, channels} : std::vector<int64_t>{channels, 1};
  const std::vector<int64_t> all =
      phasesFirst ? std::vector<int64_t>{phases, channels} : std::vector<int64_t>{channels, phases};
  return b.reshaped(b.expand(b.reshaped(bias, one), {.shape = all}), {phases * channels});
}

// Each channel on its own.
bool isDepthwise(const ConvTransposeNode& v) {
  return v.group() > 1 && v.group() == v.x().dim(1) && v.filter().dim(1) == 1;
}

Value byPhases(Builder& b, const ConvTransposeNode& v, const Window& window) {
  const Shape &x = v.x().shape(), &y = v.type().shape();
  const size_t axes = window.kernel.size();
  AllPhases phases;
  std::vector<int64_t> pads(2 * axes), groups, strides, places, sizes{x[0], y[1]};
  int64_t all = 1;
  for (size_t a = 0; a < axes; ++a) {
    const Phases p(window, a, x[static_cast<int>(a) + 2], y[static_cast<int>(a) + 2]);
    phases.push_back(p);
    pads[a] = p.before;
    pads[axes + a] = p.after;
    groups.push_back(p.groups);
    strides.push_back(p.stride);
    places.push_back(p.places);
    sizes.push_back(p.places * p.stride);
    all *= p.stride;
  }
  const auto joined = [](std::initializer_list<int64_t> first, const std::vector<int64_t>& rest) {
    std::vector<int64_t> dims(first);
    dims.insert(dims.end(), rest.begin(), rest.end());
    return dims;
  };
  Value in = cropped(b, v.x(), pads);
  Value filter = phaseFilter(b, undilated(b, v.filter(), window.dilations), phases, v.group());
  // Each channel on its own stays so for every phase: copies of the channels keep one filter each.
  const bool depthwise = isDepthwise(v);
  int64_t group = v.group();
  if (depthwise) {
    group *= all;
    std::vector<int64_t> copies = joined({in.dim(0), all}, {in.shape().dims().begin() + 1, in.shape().dims().end()});
    std::vector<int64_t> once = copies, merged = in.shape().dims();
    once[1] = 1;
    merged[1] *= all;
    in = b.reshaped(b.expand(b.reshaped(in, once), {.shape = copies}), merged);
    std::vector<int64_t> perm;
    for (int64_t a = 0; a < static_cast<int64_t>(axes); ++a) perm.push_back(2 + a);
    perm.insert(perm.end(), {0, 1});
    for (int64_t a = static_cast<int64_t>(axes) + 2; a < filter.shape().rank(); ++a) perm.push_back(a);
    filter = b.transposed(filter, perm);
  }
  filter = b.reshaped(filter, joined({y[1] * all, x[1] / v.group()}, groups));
  const Value bias = v.bias() ? phaseBias(b, v.bias(), all, depthwise) : Value();
  const Value result = b.conv(in, filter, bias, {.pads = pads, .group = group});
  // Channels and phases, in either order, then places: each phase goes to its place.
  std::vector<int64_t> split = depthwise ? joined({y[0]}, strides) : joined({y[0], y[1]}, strides);
  if (depthwise) split.push_back(y[1]);
  split.insert(split.end(), places.begin(), places.end());
  const auto rank = static_cast<int64_t>(axes);
  std::vector<int64_t> perm{0, depthwise ? rank + 1 : 1};
  for (int64_t a = 0; a < rank; ++a) perm.insert(perm.end(), {rank + 2 + a, (depthwise ? 1 : 2) + a});
  const Value spreadOut = b.reshaped(b.transposed(b.reshaped(result, split), perm), sizes);
  if (spreadOut.shape() == y) return spreadOut;
  std::vector<int64_t> starts{0, 0};
  for (const Phases& p : phases) starts.push_back(p.cut);
  return b.slice(spreadOut, {.starts = starts, .sizes = y.dims()});
}

Value bySpreading(Builder& b, const ConvTransposeNode& v, const Window& window) {
  const std::vector<int64_t> extra = filled(v.outputPadding(), window.axes(), 0);
  // What a tap may reach beyond the spread input, less what the pads cut from the result. The zeros after the last
  // element are part of the spread input already.
  std::vector<int64_t> pads;
  pads.reserve(2 * static_cast<size_t>(window.axes()));
  for (int axis = 0; axis < window.axes(); ++axis)
    pads.push_back(window.reach(axis) - 1 - window.before[static_cast<size_t>(axis)]);
  for (int axis = 0; axis < window.axes(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    pads.push_back(window.reach(axis) - window.strides[a] - window.after[a] + extra[a]);
  }
  const Value x = cropped(b, spread(b, v.x(), window.strides), pads);
  return b.conv(x, turned(b, v.filter(), v.group()), v.bias(),
                {.pads = pads, .dilations = window.dilations, .group = v.group()});
}

// Whether phases, which have to take their places afterwards, meet so many fewer taps than the spread input that this
// pays. A channel on its own, which has few products, needs a copy for each phase as well.
bool phasesPay(const Window& window, bool depthwise) {
  const double places = depthwise ? 3 : 1.5;
  double spread = 1, phases = 1;
  for (size_t a = 0; a < window.kernel.size(); ++a) {
    spread *= static_cast<double>(window.kernel[a]);
    phases *= places * static_cast<double>(ceilDiv(window.reach(static_cast<int>(a)), window.strides[a]));
  }
  return phases < spread;
}

// What stride and dilation have in common along each axis: only results that far apart see any input.
std::vector<int64_t> commonSteps(const Window& window) {
  std::vector<int64_t> steps;
  for (size_t a = 0; a < window.kernel.size(); ++a)
    steps.push_back(std::gcd(window.strides[a], window.kernel[a] == 1 ? window.strides[a] : window.dilations[a]));
  return steps;
}

// The results that see some input are a transposed convolution with smaller steps, without what the pads cut; the
// others are the bias.
Value bySpreadingResults(Builder& b, const ConvTransposeNode& v, Window window, const std::vector<int64_t>& steps) {
  const Shape& y = v.type().shape();
  const auto axes = static_cast<size_t>(window.axes());
  for (size_t a = 0; a < axes; ++a) {
    window.strides[a] /= steps[a];
    window.dilations[a] = std::max<int64_t>(window.dilations[a] / steps[a], 1);
  }
  const Value dense = b.convTranspose(v.x(), v.filter(), Value(),
                                      {.strides = window.strides, .dilations = window.dilations, .group = v.group()});
  const Value all = spread(b, dense, steps);
  std::vector<int64_t> pads(2 * axes), front{0, 0}, back{0, 0};
  for (size_t a = 0; a < axes; ++a) {
    pads[a] = -window.before[a];
    pads[axes + a] = y[static_cast<int>(a) + 2] + window.before[a] - all.dim(static_cast<int>(a) + 2);
  }
  Value result = cropped(b, all, pads);
  front.insert(front.end(), pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  back.insert(back.end(), pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  if (result.shape() != y) result = b.pad(result, b.scalarLike(result, 0), {.before = front, .after = back});
  if (!v.bias()) return result;
  std::vector<int64_t> channels(axes + 2, 1);
  channels[1] = y[1];
  return b.add(result, b.reshaped(v.bias(), channels));
}

}  // namespace

std::vector<Value> convTranspose(Builder& b, Node& node) {
  const ConvTransposeNode v(node);
  if (v.type().elements() == 0) return {b.splat({.elem = v.type().kind(), .shape = v.type().shape().dims()})};
  const std::vector<int64_t>& dims = v.filter().shape().dims();
  Window window = orFail(windowOf(v.attrs(), {dims.begin() + 2, dims.end()}));
  // A step that is never taken may be of any length.
  for (int a = 0; a < window.axes(); ++a)
    if (v.x().dim(a + 2) == 1)
      window.strides[static_cast<size_t>(a)] = std::min(window.strides[static_cast<size_t>(a)], window.reach(a));
  // Taps of one phase are a convolution over the input already.
  const std::vector<int64_t> steps = commonSteps(window);
  for (size_t a = 0; a < steps.size(); ++a)
    if (steps[a] > 1 && window.kernel[a] > 1) return {bySpreadingResults(b, v, window, steps)};
  return {phasesPay(window, isDepthwise(v)) ? byPhases(b, v, window) : bySpreading(b, v, window)};
}

}  // namespace aglow::lowering
