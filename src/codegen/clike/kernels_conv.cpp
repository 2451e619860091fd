// Convolutions.
#include <fmt/format.h>

#include "codegen/clike/conv_planes.h"
#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"

namespace aglow::codegen {

std::vector<Launch> convLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &x = writer.in(0).shape(), &filter = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0), sums = nest::computedKind(kind);
  const int64_t group = writer.attrs().integer("group"), depth = filter[1], outputs = y[1] / group;
  const Sliding sliding(writer.attrs(), {filter.dims().begin() + 2, filter.dims().end()}, x, writer.indexType());
  int64_t taps = 1, places = 1;
  for (const int64_t extent : sliding.window.kernel) taps *= extent;
  for (int axis = 2; axis < y.rank(); ++axis) places *= y[axis];
  writer.input(0, "x");
  writer.input(1, "filter");
  const std::string type = typeName(sums);
  std::string bias;
  if (writer.has(2)) {
    writer.input(2, "bias");
    bias = appliedText(Scalar::Add, sums, "given", convertedText(kind, sums, "bias[channel]"));
  }
  constexpr int64_t kFewOutputs = 4;
  if (outputs < kFewOutputs) {
    const std::string finish = bias.empty() ? "" : fmt::format("given = {};\n", bias);
    if (std::optional<Launch> planes = planeConv(writer, sliding, finish)) return {*std::move(planes)};
    const std::string met =
        fmt::format("given = inside ? MULADD_{}({}, {}, given) : given;", elemName(sums),
                    convertedText(kind, sums, fmt::format("x[(image * {} + c) * {} + from]", depth, sliding.plane)),
                    convertedText(kind, sums, fmt::format("filter[(channel * {} + c) * {} + tap]", depth, taps)));
    std::string tap = "0";
    for (size_t a = 0; a < sliding.input.size(); ++a)
      tap = fmt::format("({}) * {} + t{}", tap, sliding.window.kernel[a], a);
    std::string text = writer.resultIndices("point");
    text += fill(R"(const $I channel = i1, image = i0 * $group + i1 / $outputs;
$T given = 0;
for ($I c = 0; c < $depth; ++c) {
$loops
}
)",
                 {{"I", writer.indexType()},
                  {"T", type},
                  {"group", group},
                  {"outputs", outputs},
                  {"depth", depth},
                  {"loops", sliding.loops(fmt::format("const {} tap = {};\n{}", sliding.type, tap, met))}});
    return {writer.perPoint(writer.out().elements(), text + finish + writer.epilogue())};
  }
  // The images of a group of channels are the columns of a matrix, which is never stored.
  Product p{.batch = x[0] * group, .m = outputs, .n = places, .k = depth * taps};
  p.left =
      fmt::format("value = {};",
                  convertedText(kind, sums, fmt::format("filter[(batch % {} * {} + row) * {} + k]", group, p.m, p.k)));
  std::string condition;
  int64_t belowTap = 1, belowPlace = 1;
  p.columnType = sliding.type;
  for (size_t a = sliding.input.size(); a-- > 0;) {
    const int64_t extent = y[static_cast<int>(a) + 2], kernel = sliding.window.kernel[a];
    p.ofColumn.emplace_back(fmt::format("s{}", a),
                            sliding.position(a, fmt::format("column / {} % {}", belowPlace, extent), "0"));
    p.atK += fmt::format("const {0} d{1} = ({0})(k / {2} % {3}) * {4};\n", sliding.type, a, belowTap, kernel,
                         sliding.window.dilations[a]);
    p.right += fmt::format("const {0} q{1} = s{1} + d{1};\n", sliding.type, a);
    condition += (condition.empty() ? "" : " && ") + sliding.inside(a);
    belowTap *= kernel;
    belowPlace *= extent;
  }
  // No branch, so that lanes go side by side.
  p.right += fmt::format(
      "const bool inside = {};\nconst {} at = inside ? {} : 0;\nvalue = {};\nvalue = inside ? value : 0;",
      condition.empty() ? "true" : condition, sliding.type, sliding.element(),
      convertedText(kind, sums, fmt::format("x[(batch * {} + k / {}) * {} + at]", depth, taps, sliding.plane)));
  if (sliding.copiesInput(taps)) {
    p.ofColumn.clear();
    p.atK.clear();
    p.right =
        fmt::format("value = {};",
                    convertedText(kind, sums, fmt::format("x[(batch * {} + k) * {} + column]", depth, sliding.plane)));
  }
  if (!bias.empty())
    p.finish =
        fmt::format("const {} channel = batch % {} * {} + row;\ngiven = {};\n", writer.indexType(), group, p.m, bias);
  return {tiles(writer, p, sums)};
}

}  // namespace aglow::codegen
