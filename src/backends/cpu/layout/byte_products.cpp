#include <fmt/format.h>

#include "backends/cpu/layout/bytes.h"

namespace aglow {

Decision multipliesBytes(const Node& product, int64_t lanes) {
  const Type& weights = product.input(1).type();
  if (product.op() == Op::MatMul) {
    constexpr int64_t kMostlyEmpty = 4;
    const int64_t columns = weights.dim(weights.rank() - 1);
    if (kMostlyEmpty * columns >= 2 * lanes) return Decision::yes();
    return Decision::no(fmt::format("{} columns leave vectors mostly empty", columns));
  }
  constexpr int kImageRank = 4;
  if (product.type().rank() > kImageRank)
    return Decision::no(fmt::format("bytes are convolved over two axes, not over {}", product.type().rank() - 2));
  const int64_t group = product.attrs().integer("group"), channels = product.input(0).dim(1), outputs = weights.dim(0);
  if (group == 1) {
    if (channels >= lanes || 2 * outputs >= lanes) return Decision::yes();
    return Decision::no(fmt::format("{} and {} channels leave vectors mostly empty", channels, outputs));
  }
  const bool whole = channels / group % lanes == 0 && outputs / group % (2 * lanes) == 0;
  if (whole || (group == channels && group == outputs)) return Decision::yes();
  return Decision::no(
      fmt::format("groups of {} and {} channels are not whole vectors", channels / group, outputs / group));
}

}  // namespace aglow
