// Convolutions.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/conv_planes.h"
#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

namespace {

// Outputs of a group of channels that are too few for tiles.
constexpr int64_t kFewOutputs = 4;

// Of bytes, with sums in i32: the one that is zero.
int64_t offsetOf(const Attrs& attrs, std::string_view name) {
  return opOf(attrs.op()) == Op::ByteConv ? attrs.integer(name) : 0;
}

// The images of a group of channels are the columns of a matrix, which is never stored; on devices that share tiles,
// those of all images are. With so many outputs of a group: the convolution's own, or those of the whole.
ProductSizes sizesOf(const Type& x, const Type& filter, const Type& y, int64_t group, int64_t outputs,
                     const DeviceShape& shape) {
  ProductSizes s{.batch = group, .m = outputs, .n = 1, .k = 1};
  for (int axis = 2; axis < y.rank(); ++axis) s.n *= y.dim(axis);
  for (int axis = 1; axis < filter.rank(); ++axis) s.k *= filter.dim(axis);
  s.held = s.sums = nest::computedKind(y.kind());
  (sharesTiles(s.sums, shape) ? s.n : s.batch) *= x.dim(0);
  int64_t plane = 1;
  for (int axis = 2; axis < x.rank(); ++axis) plane *= x.dim(axis);
  if (plane == 0) s.k = 0;  // padding is all there is
  s.gathers = s.k != filter.dim(1) || plane % 4 != 0 || plane * x.dim(0) != s.n;
  if (storageKind(x.kind()) == ElemKind::Float16 && multipliesHalves(s, shape)) s.held = ElemKind::Float16;
  return s;
}

Product columnsOf(KernelWriter& writer, const Sliding& sliding, const ProductSizes& sizes, const std::string& bias) {
  const Shape &filter = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0);
  const int64_t offset = offsetOf(writer.attrs(), "x_offset");
  const int64_t group = writer.attrs().integer("group"), depth = filter[1],
                taps = sizes.k / std::max<int64_t>(depth, 1);
  const bool joined = sharesTiles(sizes.sums, writer.shape());
  const int64_t places = joined ? sizes.n / std::max<int64_t>(y[0], 1) : sizes.n;
  Product p{.sizes = sizes};
  p.left = {.pointer = "filter",
            .number = fmt::format("(batch % {} * {} + row) * {} + k", group, sizes.m, sizes.k),
            .kind = writer.kindOf(1),
            .offset = offsetOf(writer.attrs(), "filter_offset"),
            .alongK = true,
            .whole = writer.together(1, sizes.k)};
  // The number of the place in its image, and of the first channel in all images.
  const std::string place = joined ? "place" : "column";
  const std::string channels =
      joined ? fmt::format("(image * {} + batch) * {}", group, depth) : fmt::format("batch * {}", depth);

  std::vector<std::pair<std::string, std::string>> ofColumn;
  if (joined) ofColumn = {{"image", fmt::format("column / {}", places)}};
  if (sliding.copiesInput(taps)) {
    if (joined) ofColumn.emplace_back("place", fmt::format("column % {}", places));
    p.right = {.pointer = "x",
               .number = fmt::format("({} + k) * {} + {}", channels, sliding.plane, place),
               .kind = kind,
               .offset = offset,
               .whole = writer.together(0, sliding.plane)};
  } else if (joined && taps <= Sliding::kMostBits) {
    p.right = {.pointer = "x", .number = "from", .kind = kind, .offset = offset, .inside = "inside"};
    ofColumn = {{"start", sliding.start(fmt::format("(column / {} * {} + batch) * {}", places, group, depth), y)},
                {"taps", sliding.tapsInside(y)}};
    p.right.atK = fmt::format("const {0} tap = k % {1}, on = k / {1} * {2} + {3};\n", sliding.type, taps, sliding.plane,
                              sliding.on("tap"));
    p.right.before = fmt::format(
        "const bool inside = (taps >> tap & 1) != 0;\nconst {} from = inside ? start + on : 0;\n", sliding.type);
  } else {
    p.right = {.pointer = "x", .number = {}, .kind = kind, .offset = offset};
    std::string condition;
    int64_t belowTap = 1, belowPlace = 1;
    for (size_t a = sliding.input.size(); a-- > 0;) {
      const int64_t extent = y[static_cast<int>(a) + 2], kernel = sliding.window.kernel[a];
      const std::string result = fmt::format("column / {} % {}", belowPlace, extent);
      ofColumn.emplace_back(fmt::format("s{}", a), sliding.position(a, result, "0"));
      p.right.atK += fmt::format("const {0} d{1} = ({0})(k / {2} % {3}) * {4};\n", sliding.type, a, belowTap, kernel,
                                 sliding.window.dilations[a]);
      p.right.before += fmt::format("const {0} q{1} = s{1} + d{1};\n", sliding.type, a);
      condition += (condition.empty() ? "" : " && ") + sliding.inside(a);
      belowTap *= kernel;
      belowPlace *= extent;
    }
    // No branch, so that lanes go side by side.
    p.right.before += fmt::format("const bool inside = {};\nconst {} from = inside ? {} : 0;\n",
                                  condition.empty() ? "true" : condition, sliding.type, sliding.element());
    p.right.inside = "inside";
    p.right.number = fmt::format("({} + k / {}) * {} + from", channels, taps, sliding.plane);
  }
  p.right.ofLine = std::move(ofColumn);
  p.right.lineType = sliding.type;
  if (!bias.empty())
    p.finish = fmt::format("const {} channel = batch % {} * {} + row;\ngiven = {};\n", writer.indexType(), group,
                           sizes.m, bias);
  if (!joined) return p;
  const int64_t outputs = group * sizes.m;
  p.point = fmt::format("(column / {0} * {1} + batch * {2} + row) * {0} + column % {0}", places, outputs, sizes.m);
  p.indices =
      fmt::format("const {0} i0 = column / {1}, i1 = batch * {2} + row;\n", writer.indexType(), places, sizes.m);
  int64_t below = 1;
  for (int axis = y.rank() - 1; axis >= 2; below *= y[axis--])
    p.indices += fmt::format("const {} i{} = column / {} % {};\n", writer.indexType(), axis, below, y[axis]);
  p.inFours = places % 4 == 0;
  return p;
}

}  // namespace

int64_t convScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const Type &x = program[anchor.inputs()[0].region].type, &filter = program[anchor.inputs()[1].region].type,
             &y = program[anchor.results()[0].region].type;
  const int64_t group = anchor.attrs.integer("group");
  const int64_t outputs = y.dim(1) / group, whole = wholeOf(anchor.attrs, outputs);
  if (whole < kFewOutputs || y.elements() == 0) return 0;
  ProductSizes sizes = sizesOf(x, filter, y, group, whole, shape);
  if (!sharesTiles(sizes.sums, shape) || sizes.k == 0) return 0;
  const GroupTile tile = chooseTile(sizes, shape, true);
  sizes.m = outputs;
  return partBytes(sizes, tile);
}

std::vector<Launch> convLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &x = writer.in(0).shape(), &filter = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind sums = nest::computedKind(writer.out().kind());
  const int64_t group = writer.attrs().integer("group"), depth = filter[1], outputs = y[1] / group,
                whole = wholeOf(writer.attrs(), outputs);
  const Sliding sliding(writer.attrs(), {filter.dims().begin() + 2, filter.dims().end()}, x, writer.indexType());
  int64_t taps = 1;
  for (const int64_t extent : sliding.window.kernel) taps *= extent;
  writer.input(0, "x");
  writer.input(1, "filter");
  const std::string type = typeName(sums);
  std::string bias;
  if (writer.has(2)) {
    writer.input(2, "bias");
    bias = appliedText(Scalar::Add, sums, "given", elementText(writer.kindOf(2), sums, "bias[channel]"));
  }
  const std::string finish = bias.empty() ? "" : fmt::format("given = {};\n", bias);
  // Rows in local memory are floats or whole words.
  if (opOf(writer.attrs().op()) != Op::ByteConv) {
    std::optional<Launch> planes = planeConv(writer, sliding, finish);
    if (!planes && whole < kFewOutputs) planes = groupPlaneConv(writer, sliding, finish);
    if (planes) return {*std::move(planes)};
  }
  if (whole < kFewOutputs) {
    const auto element = [&](size_t input, std::string_view offset, const std::string& stored) {
      const std::string value = elementText(writer.kindOf(input), sums, stored);
      const int64_t less = offsetOf(writer.attrs(), offset);
      return less == 0 ? value : fmt::format("({} - {})", value, less);
    };
    const std::string met =
        fmt::format("given = inside ? MULADD_{}({}, {}, given) : given;", elemName(sums),
                    element(0, "x_offset", fmt::format("x[(image * {} + c) * {} + from]", depth, sliding.plane)),
                    element(1, "filter_offset", fmt::format("filter[(channel * {} + c) * {} + tap]", depth, taps)));
    std::string tap = "0";
    for (size_t a = 0; a < sliding.input.size(); ++a)
      tap = fmt::format("({}) * {} + t{}", tap, sliding.window.kernel[a], a);
    std::string text = writer.resultIndices("point");
    text += fill(R"(const $I channel = i1, image = i0 * $group + i1 / $outputs;
$T given = $zero;
for ($I c = 0; c < $depth; ++c) {
$loops
}
)",
                 {{"I", writer.indexType()},
                  {"T", type},
                  {"zero", zeroText(sums)},
                  {"group", group},
                  {"outputs", outputs},
                  {"depth", depth},
                  {"loops", sliding.loops(fmt::format("const {} tap = {};\n{}", sliding.type, tap, met))}});
    return {writer.perPoint(writer.out().elements(), text + finish + writer.epilogue())};
  }
  const ProductSizes all = sizesOf(writer.in(0), writer.in(1), writer.out(), group, whole, shape);
  ProductSizes sizes = all;
  sizes.m = outputs;
  return tiles(writer, columnsOf(writer, sliding, sizes, bias), all);
}

}  // namespace aglow::codegen
