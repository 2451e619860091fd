// Products of matrices.
#include <fmt/format.h>

#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"

namespace aglow::codegen {

// Sums of nothing, whose operands may have no element to load.
static Launch zeros(KernelWriter& writer, const Product& p) {
  const ProductSizes& s = p.sizes;
  const std::string indices = p.indices.empty() ? writer.resultIndices("point") : p.indices;
  return writer.perPoint(
      s.batch * s.m * s.n,
      fill(R"(const $I batch = point / $mn, row = point / $n % $m, column = point % $n, number = point;
(void)batch, (void)row, (void)column;
{
  const $I point = $point;
  $T given = $zero;
$store
}
)",
           {{"I", writer.indexType()},
            {"T", typeName(s.sums)},
            {"mn", s.m * s.n},
            {"m", s.m},
            {"n", s.n},
            {"point", p.point.empty() ? "number" : p.point},
            {"zero", zeroText(s.sums)},
            {"store", p.finish + indices + writer.epilogue()}}));
}

std::vector<Launch> tiles(KernelWriter& writer, const Product& p, const ProductSizes& whole) {
  if (p.sizes.k == 0) return {zeros(writer, p)};
  if (!sharesTiles(p.sizes.sums, writer.shape()))
    return {itemTiles(writer, p, p.finish + writer.resultIndices("point") + writer.epilogue())};
  return groupTiles(writer, p, chooseTile(whole, writer.shape(), true), [&](KernelWriter& last) -> Handed {
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

// Bytes less their offsets, with sums in i32; of other products elements have one kind.
bool multipliesBytes(const Attrs& attrs) { return opOf(attrs.op()) == Op::ByteMatMul; }

// Whether the right matrix has its columns side by side.
bool isTransposed(const Attrs& attrs) { return multipliesBytes(attrs) && attrs.flag("transposed"); }

// Whether the left one has its rows side by side.
bool isTurned(const Attrs& attrs) { return opOf(attrs.op()) == Op::TransposedMatMul; }

struct Sizes {
  ProductSizes own, whole;  // the second: of what it is a part of
};

Sizes sizesOf(const Attrs& attrs, const Type& left, const Type& right, const Type& result, const DeviceShape& shape) {
  const Shape &a = left.shape(), &b = right.shape(), &y = result.shape();
  const ElemKind kind = storageKind(left.kind());
  ProductSizes s{.batch = leading(y).elements(),
                 .m = y[y.rank() - 2],
                 .n = wholeOf(attrs, y[y.rank() - 1]),
                 .k = a[a.rank() - (isTurned(attrs) ? 2 : 1)]};
  s.held = s.sums = nest::computedKind(result.kind());
  if (!isTurned(attrs) && joinsBatch(a, b, y, s.sums, shape)) {
    s.m *= s.batch;
    s.batch = 1;
  }
  if (kind == ElemKind::Float16 && multipliesHalves(s, shape)) s.held = kind;
  const auto ofColumns = [&](int64_t n) {
    ProductSizes sizes = s;
    sizes.n = n;
    sizes.gathers = n % 4 != 0 || isTransposed(attrs);
    return sizes;
  };
  return {.own = ofColumns(y[y.rank() - 1]), .whole = ofColumns(s.n)};
}

}  // namespace

int64_t matMulScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const Sizes sizes = sizesOf(anchor.attrs, program[anchor.inputs()[0].region].type,
                              program[anchor.inputs()[1].region].type, program[anchor.results()[0].region].type, shape);
  if (!sharesTiles(sizes.own.sums, shape) || sizes.own.k == 0) return 0;
  return partBytes(sizes.own, chooseTile(sizes.whole, shape, true));
}

std::vector<Launch> matMulLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &a = writer.in(0).shape(), &b = writer.in(1).shape(), &y = writer.out().shape();
  const bool turned = isTurned(writer.attrs()), transposed = isTransposed(writer.attrs());
  const Sizes sizes = sizesOf(writer.attrs(), writer.in(0), writer.in(1), writer.out(), shape);
  Product p{.sizes = sizes.own};
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
  const auto side = [&](size_t input, const char* name, const char* offset, const std::string& first, bool alongK,
                        int64_t line) {
    return Side{.pointer = name,
                .number = first,
                .kind = writer.kindOf(input),
                .offset = multipliesBytes(writer.attrs()) ? writer.attrs().integer(offset) : 0,
                .alongK = alongK,
                .whole = writer.together(input, line)};
  };
  p.left = side(0, "one", "a_offset",
                turned ? fmt::format("(({}) * {} + k) * {} + row", item(a), s.k, s.m)
                       : fmt::format("(({}) * {} + row) * {} + k", item(a), s.m, s.k),
                !turned, turned ? s.m : s.k);
  p.right = side(1, "other", "b_offset",
                 transposed ? fmt::format("(({}) * {} + column) * {} + k", item(b), s.n, s.k)
                            : fmt::format("(({}) * {} + k) * {} + column", item(b), s.k, s.n),
                 transposed, transposed ? s.k : s.n);
  p.inFours = s.n % 4 == 0;
  return tiles(writer, p, sizes.whole);
}

}  // namespace aglow::codegen
