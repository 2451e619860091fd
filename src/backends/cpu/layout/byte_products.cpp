#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/kernels/attention/attention_desc.h"
#include "backends/cpu/layout/bytes.h"

namespace aglow {

namespace {

Decision fillVectors(int64_t columns, int64_t lanes) {
  constexpr int64_t kMostlyEmpty = 4;
  if (kMostlyEmpty * columns >= 2 * lanes) return Decision::yes();
  return Decision::no(fmt::format("{} columns leave vectors mostly empty", columns));
}

// Bytes that have to be packed when code runs pay where they are multiplied faster than floats.
Decision pays(const Node& product, const cpu::Machine& machine) {
  if (!machine.bytes) return Decision::no("the processor multiplies floats as fast as bytes");
  if (product.op() != Op::Attention) return Decision::yes();
  const int64_t widest = std::max(product.input(0).dim(3), product.input(2).dim(3));
  if (widest <= cpu::kByteAttentionWidth) return Decision::yes();
  return Decision::no(fmt::format("heads of {} elements are wider than {}", widest, cpu::kByteAttentionWidth));
}

}  // namespace

Decision multipliesBytes(const Node& product, const cpu::Machine& machine) {
  const int64_t lanes = machine.lanes;
  const Type& weights = product.input(product.op() == Op::Attention ? 2 : 1).type();
  if (product.op() != Op::Conv) {
    if (Decision no = fillVectors(weights.dim(weights.rank() - 1), lanes); !no) return no;
    return isConstant(product.input(1)) ? Decision::yes() : pays(product, machine);
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
