// Products of matrices.
#include <fmt/format.h>

#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

Launch tiles(KernelWriter& writer, const Product& p, ElemKind sums) {
  return tiles(writer, p, sums, p.finish + writer.resultIndices("point") + writer.epilogue());
}

Launch tiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store) {
  const bool shared = writer.shape().sharesLocal && writer.shape().groupItems >= 256;
  return shared ? groupTiles(writer, p, sums, store) : itemTiles(writer, p, sums, store);
}

std::vector<Launch> matMulLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &a = writer.in(0).shape(), &b = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0), sums = nest::computedKind(kind);
  Product p{.m = y[y.rank() - 2], .n = y[y.rank() - 1], .k = a[a.rank() - 1]};
  const auto leading = [](const Shape& s) { return Shape(std::vector(s.dims().begin(), s.dims().end() - 2)); };
  const Shape batch = leading(y);
  p.batch = batch.elements();
  // The number of the matrix, from the batch's.
  const auto item = [&](const Shape& from) {
    const std::vector<int64_t> strides = broadcastStrides(leading(from), batch);
    std::string text = "0";
    int64_t below = 1;
    for (int axis = batch.rank() - 1; axis >= 0; below *= batch[axis--])
      if (strides[static_cast<size_t>(axis)] != 0)
        text += fmt::format(" + batch / {} % {} * {}", below, batch[axis], strides[static_cast<size_t>(axis)]);
    return text;
  };
  writer.input(0, "one");
  writer.input(1, "other");
  p.left = fmt::format("value = {};",
                       convertedText(kind, sums, fmt::format("one[(({}) * {} + row) * {} + k]", item(a), p.m, p.k)));
  p.right = fmt::format(
      "value = {};", convertedText(kind, sums, fmt::format("other[(({}) * {} + k) * {} + column]", item(b), p.k, p.n)));
  return {tiles(writer, p, sums)};
}

}  // namespace aglow::codegen
