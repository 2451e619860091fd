// Products of matrices.
#include <fmt/format.h>

#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"

namespace aglow::codegen {

std::vector<Launch> tiles(KernelWriter& writer, const Product& p) {
  if (!sharesTiles(p.sizes.sums, writer.shape()))
    return {itemTiles(writer, p, p.finish + writer.resultIndices("point") + writer.epilogue())};
  return groupTiles(writer, p, chooseTile(p.sizes, writer.shape(), true), [&](KernelWriter& last) -> Handed {
    const std::string indices = p.indices.empty() ? last.resultIndices("point") : p.indices;
    if (p.inFours) return {.one = {}, .four = last.epilogueOfFour(indices, p.finish)};
    return {.one = p.finish + indices + last.epilogue()};
  });
}

namespace {

Shape leading(const Shape& s) { return Shape(std::vector(s.dims().begin(), s.dims().end() - 2)); }

// Of one matrix for all, the rows of all others are those of one.
bool joinsBatch(const Shape& a, const Shape& b, const Shape& y, ElemKind sums, const DeviceShape& shape) {
  return sharesTiles(sums, shape) && leading(b).elements() == 1 && leading(a) == leading(y);
}

// Whether matrices on the left lie with their columns side by side.
bool isTurned(const Instr& anchor) { return opOf(anchor.attrs.op()) == Op::TransposedMatMul; }

ProductSizes sizesOf(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const auto typeOf = [&](const Operand& operand) -> const Type& { return program[operand.region].type; };
  const Type& left = typeOf(anchor.inputs()[0]);
  const Shape &a = left.shape(), &b = typeOf(anchor.inputs()[1]).shape(), &y = typeOf(anchor.results()[0]).shape();
  const ElemKind kind = storageKind(left.kind());
  ProductSizes s{.batch = leading(y).elements(), .m = y[y.rank() - 2], .n = y[y.rank() - 1], .k = b[b.rank() - 2]};
  s.held = s.sums = nest::computedKind(kind);
  s.gathers = s.n % 4 != 0;
  if (!isTurned(anchor) && joinsBatch(a, b, y, s.sums, shape)) {
    s.m *= s.batch;
    s.batch = 1;
  }
  if (kind == ElemKind::Float16 && multipliesHalves(s, shape)) s.held = kind;
  return s;
}

}  // namespace

int64_t matMulScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const ProductSizes sizes = sizesOf(program, anchor, shape);
  if (!sharesTiles(sizes.sums, shape)) return 0;
  return partBytes(sizes, chooseTile(sizes, shape, true));
}

std::vector<Launch> matMulLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &a = writer.in(0).shape(), &b = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0);
  Product p{.sizes = sizesOf(program, writer.anchor(), shape)};
  const ProductSizes& s = p.sizes;
  const Shape batch = leading(y);
  // The number of the matrix, from the batch's.
  const auto item = [&](const Shape& from) {
    std::string text = "0";
    if (s.batch == 1) return text;
    const std::vector<int64_t> strides = broadcastStrides(leading(from), batch);
    int64_t below = 1;
    for (int axis = batch.rank() - 1; axis >= 0; below *= batch[axis--])
      if (strides[static_cast<size_t>(axis)] != 0)
        text += fmt::format(" + batch / {} % {} * {}", below, batch[axis], strides[static_cast<size_t>(axis)]);
    return text;
  };
  writer.input(0, "one");
  writer.input(1, "other");
  const auto side = [&](size_t input, const char* name, const std::string& first, bool alongK, int64_t line) {
    return Side{.pointer = name,
                .number = first,
                .kind = kind,
                .alongK = alongK,
                .whole = kind == s.held ? writer.together(input, line) : 1};
  };
  p.left = isTurned(writer.anchor())
               ? side(0, "one", fmt::format("(({}) * {} + k) * {} + row", item(a), s.k, s.m), false, s.m)
               : side(0, "one", fmt::format("(({}) * {} + row) * {} + k", item(a), s.m, s.k), true, s.k);
  p.right = side(1, "other", fmt::format("(({}) * {} + k) * {} + column", item(b), s.k, s.n), false, s.n);
  p.inFours = s.n % 4 == 0;
  return tiles(writer, p);
}

}  // namespace aglow::codegen
