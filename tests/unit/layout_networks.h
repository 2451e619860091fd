// Pieces of networks for tests of layouts, and layers at random.
#pragma once

#include "evaluate.h"
#include "graph/builder.h"
#include "support/rng.h"

namespace aglow::testing_support {

class Network {
public:
  explicit Network(uint64_t seed = 1) : b(f), rng(seed) {}

  Value image(Shape shape) { return b.input("x", Type(ElemKind::Float32, std::move(shape))); }
  Value weights(Shape shape) {
    const Type type(ElemKind::Float32, std::move(shape));
    std::vector<double> values(static_cast<size_t>(type.elements()));
    for (double& v : values) v = rng.real(-0.5, 0.5);
    return b.constant(Tensor::fromDoubles(type, values), "w");
  }
  // A convolution with one spatial axis or two, padded so that the extents stay (up to strides).
  Value conv(Value x, int64_t outputs, int64_t kernel, ConvAttrs attrs = {}, bool bias = true) {
    Shape filter = x.rank() == 3 ? Shape{outputs, x.dim(1) / attrs.group, kernel}
                                 : Shape{outputs, x.dim(1) / attrs.group, kernel, kernel};
    attrs.pads.assign(2 * static_cast<size_t>(x.rank() - 2), kernel / 2);
    return b.conv(x, weights(filter), bias ? weights({outputs}) : Value{}, attrs);
  }
  Value depthwise(Value x, int64_t kernel, std::vector<int64_t> strides = {}) {
    return conv(x, x.dim(1), kernel, {.strides = std::move(strides), .group = x.dim(1)});
  }
  // A gate for each channel from the mean of its plane.
  Value squeezeExcite(Value x) {
    const Value mean = b.reduced(x, "mean", {2, 3});
    const Value gate = b.sigmoid(conv(b.relu(conv(mean, std::max<int64_t>(x.dim(1) / 4, 1), 1)), x.dim(1), 1));
    return b.mul(x, gate);
  }
  Value dense(Value x, int64_t outputs) {
    const Value flat = b.reshaped(x, {x.dim(0), x.type().elements() / x.dim(0)});
    return b.add(b.matMul(flat, weights({flat.dim(1), outputs})), weights({outputs}));
  }
  Value residual(Value x) { return b.relu(b.add(conv(b.relu(conv(x, x.dim(1), 3)), x.dim(1), 3), x)); }
  // One of the layers that networks have, or something that no blocks survive.
  Value randomLayer(Value x);

  Module module;
  Function& f = *module.addFunction("planar");
  Builder b;
  Rng rng;
};

inline Value Network::randomLayer(Value x) {
  const int64_t c = x.dim(1);
  switch (rng.between(0, 18)) {
    case 0:
      return conv(x, rng.between(1, 40), rng.pick(std::vector<int64_t>{1, 3}), {}, rng.flip());
    case 1:
      return conv(x, rng.between(8, 40), 3, {.strides = {rng.between(1, 2), rng.between(1, 2)}});
    case 2:
      return depthwise(x, 3);
    case 3:
      return squeezeExcite(x);
    case 4:
      return residual(x);
    case 5:
      return b.mul(x, weights(rng.flip() ? Shape{c, 1, 1} : Shape{1, c, 1, 1}));
    case 6:
      return b.clip(x, b.scalarLike(x, -1), b.scalarLike(x, 1));
    case 7:
      return b.maxPool(x, {.kernel = {2, 2}, .strides = {1, 2}, .pads = {0, 1, 1, 0}});
    case 8:
      return b.avgPool(x, {.kernel = {3, 3}, .pads = {1, 1, 1, 1}, .countIncludePad = rng.flip()});
    case 9:
      return b.concat({x, b.tanh(x)}, {.axis = rng.between(0, 3)});
    case 10: {
      const int64_t from = rng.between(0, c - 1);
      return b.slice(x, {.starts = {0, from, 0, 0}, .sizes = {x.dim(0), c - from, x.dim(2), x.dim(3)}});
    }
    case 11:
      return b.pad(x, b.scalarLike(x, 2),
                   {.before = {0, 4 * rng.between(0, 1), 1, 0}, .after = {0, 3 * rng.between(0, 1), 0, 1}});
    case 12: {
      const int64_t axis = rng.between(1, 3);
      return b.gather(x, b.ints({0, 0, x.dim(static_cast<int>(axis)) - 1}), {.axis = axis});
    }
    case 13:
      return b.softmax(x, {.axis = rng.between(1, 3)});
    case 14:
      return b.where(b.less(x, weights({1, 1, x.dim(2), x.dim(3)})), x, b.scalarLike(x, 0.5));
    case 15:
      return b.transposed(b.relu(b.transposed(x, {0, 2, 3, 1})), {0, 3, 1, 2});
    case 16:
      return b.mul(x, b.reduced(x, rng.flip() ? "max" : "mean", {rng.between(1, 3)}));
    case 17:
      return b.reshaped(b.neg(b.reshaped(x, {x.dim(0), c, x.dim(2) * x.dim(3)})), x.shape().dims());
    default:
      return b.expand(b.reduced(x, "sum", {2, 3}), {.shape = x.shape().dims()});
  }
}

}  // namespace aglow::testing_support
