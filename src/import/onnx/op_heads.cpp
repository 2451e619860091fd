#include "import/onnx/op_heads.h"

#include <fmt/format.h>

#include "import/onnx/op_support.h"

namespace aglow::onnx {

Value splitHeads(Builder& b, Value x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0)
    fail(Code::BadNode, fmt::format("expected [batch, length, width] with a width that divides into {} heads, got {}",
                                    heads, x.type().text()));
  return b.transposed(b.reshaped(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Value joinHeads(Builder& b, Value x) {
  return b.reshaped(b.transposed(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Value rotatedPairs(Builder& b, Value x, Value cosine, Value sine, bool interleaved) {
  const int rank = x.rank();
  const int64_t axis = rank - 1, half = x.dim(rank - 1) / 2;
  const Value first = interleaved ? sliced(b, x, axis, 0, half, 2) : sliced(b, x, axis, 0, half);
  const Value second = interleaved ? sliced(b, x, axis, half == 0 ? 0 : 1, half, 2) : sliced(b, x, axis, half, half);
  const Value real = b.sub(b.mul(cosine, first), b.mul(sine, second));
  const Value imaginary = b.add(b.mul(sine, first), b.mul(cosine, second));
  if (!interleaved) return b.concat({real, imaginary}, {.axis = axis});
  const Value pairs = b.concat({unsqueezed(b, real, rank), unsqueezed(b, imaginary, rank)}, {.axis = rank});
  return b.reshaped(pairs, x.shape().dims());
}

}  // namespace aglow::onnx
