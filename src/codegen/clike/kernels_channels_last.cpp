// Convolutions of channels that lie side by side, in halves: rows of a product are the places of all results, columns
// the outputs, and k runs over the channels of one tap after the other. Both sides then lie along k.
#include <fmt/format.h>

#include "codegen/clike/sliding.h"
#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

namespace {

// An image or result as if it were planar.
Shape planes(const Shape& s) { return s.rank() == 4 ? s : Shape{s[0], s[4], s[2], s[3]}; }

ProductSizes sizesOf(const Shape& x, const Shape& filter, const Shape& y) {
  return {.m = y[0] * y[2] * y[3],
          .n = filter[0],
          .k = filter[1] * filter[2] * filter[3],
          .held = ElemKind::Float16,
          .gathers = x.rank() == 4,
          .alongK = true};
}

Side imageOf(const KernelWriter& writer, const Sliding& sliding) {
  const Shape y = planes(writer.out().shape());
  const bool planar = writer.in(0).rank() == 4;
  const int64_t channels = writer.in(1).dim(3), places = y[2] * y[3];
  const int64_t taps = sliding.window.kernel[0] * sliding.window.kernel[1];
  Side side{.pointer = "x", .number = "from", .kind = writer.kindOf(0), .inside = "inside", .alongK = !planar};
  side.lineType = sliding.type;
  if (!planar) side.whole = writer.together(0, channels);
  if (!planar && sliding.copiesInput(taps)) {
    side.number = fmt::format("row * {} + k", channels);
    side.inside = {};
    return side;
  }
  // Steps from place to place, and from channel to channel.
  const int64_t place = planar ? 1 : channels, channel = planar ? sliding.plane : 1;
  const std::string image = fmt::format("row / {}", places);
  side.ofLine = {{"start", planar ? sliding.start(fmt::format("{} * {}", image, channels), y, "row")
                                  : fmt::format("({}) * {}", sliding.start(image, y, "row"), channels)}};
  side.atK = fmt::format("const {0} tap = k / {1}, on = k % {1} * {2} + ({3}) * {4};\n", sliding.type, channels,
                         channel, sliding.on("tap"), place);
  std::string inside = "(taps >> tap & 1) != 0";
  if (taps <= Sliding::kMostBits) {
    side.ofLine.emplace_back("taps", sliding.tapsInside(y, "row"));
  } else {
    inside.clear();
    int64_t belowTap = 1, belowPlace = 1;
    for (size_t a = 2; a-- > 0; belowTap *= sliding.window.kernel[a], belowPlace *= y[static_cast<int>(a) + 2]) {
      const std::string result = fmt::format("row / {} % {}", belowPlace, y[static_cast<int>(a) + 2]);
      side.ofLine.emplace_back(fmt::format("s{}", a), sliding.position(a, result, "0"));
      side.before += fmt::format("const {0} q{1} = s{1} + tap / {2} % {3} * {4};\n", sliding.type, a, belowTap,
                                 sliding.window.kernel[a], sliding.window.dilations[a]);
      inside += (inside.empty() ? "" : " && ") + sliding.inside(a);
    }
  }
  side.before +=
      fmt::format("const bool inside = {};\nconst {} from = inside ? start + on : 0;\n", inside, sliding.type);
  return side;
}

}  // namespace

Decision takesChannelsLast(const Attrs& /*attrs*/, const OperandTypes& types, const DeviceShape& shape) {
  const Type &x = *types.in[0], &filter = *types.in[1], &y = *types.out[0];
  if (x.kind() != ElemKind::Float16) return Decision::no(fmt::format("needs f16, has {}", elemName(x.kind())));
  if (!multipliesHalves(sizesOf(x.shape(), filter.shape(), y.shape()), shape))
    return Decision::no("needs a device that multiplies matrices of f16, and matrices of some size");
  return Decision::yes();
}

int64_t channelsLastScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const Shape &x = program[anchor.inputs()[0].region].type.shape(),
              &filter = program[anchor.inputs()[1].region].type.shape(),
              &y = program[anchor.results()[0].region].type.shape();
  if (y.elements() == 0) return 0;
  const ProductSizes sizes = sizesOf(x, filter, y);
  return partBytes(sizes, chooseTile(sizes, shape, true));
}

std::vector<Launch> channelsLastLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape& filter = writer.in(1).shape();
  const Sliding sliding(writer.attrs(), {filter[1], filter[2]}, planes(writer.in(0).shape()), writer.indexType());
  writer.input(0, "x");
  writer.input(1, "filter");
  Product p{.sizes = sizesOf(writer.in(0).shape(), filter, writer.out().shape())};
  p.left = imageOf(writer, sliding);
  p.right = {.pointer = "filter",
             .number = fmt::format("column * {} + k", p.sizes.k),
             .kind = writer.kindOf(1),
             .alongK = true,
             .whole = writer.together(1, p.sizes.k)};
  if (writer.has(2)) {
    writer.input(2, "bias");
    p.finish = fmt::format("given = {};\n", appliedText(Scalar::Add, p.sizes.sums, "given",
                                                        elementText(writer.kindOf(2), p.sizes.sums, "bias[column]")));
  }
  p.inFours = p.sizes.n % 4 == 0;
  return tiles(writer, p, p.sizes);
}

}  // namespace aglow::codegen
