// Products, convolutions and pools.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/clike/kernel_writer.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"
#include "ops/window.h"
#include "reference/arithmetic.h"

namespace aglow::codegen {

namespace {

// Matrices by matrices, `batch` of each: what the element of either one is (statements that set `value`, from batch,
// row and k, or batch, k and column), and what is added to a sum at last.
struct Product {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  std::string left, right;
  std::string finish = {};  // statements on `given`
  // What `right` uses: variables that follow from the column alone, with their type, and statements on k alone.
  std::vector<std::pair<std::string, std::string>> ofColumn = {};
  std::string columnType = {};
  std::string atK = {};
};

// Tiles of a group: its items load them into local memory together, and each keeps 4 x 4 sums.
constexpr std::string_view kSharedTiles = R"(LOCAL $T left[16][65];
LOCAL $T right[16][65];
const int32_t across = (int32_t)LOCAL_ITEM(0), down = (int32_t)LOCAL_ITEM(1);
const $I batch = ($I)GROUP(1) / $tiles, top = ($I)GROUP(1) % $tiles * 64, side = ($I)GROUP(0) * 64;
$T sums[4][4];
for (int32_t r = 0; r < 4; ++r)
  for (int32_t c = 0; c < 4; ++c) sums[r][c] = 0;
for ($I first = 0; first < $k; first += 16) {
  for (int32_t e = down * 16 + across; e < 1024; e += 256) {
    {
      const $I row = top + e / 16, k = first + e % 16;
      $T value = 0;
      if (row < $m && k < $k) {
$left
      }
      left[e % 16][e / 16] = value;
    }
    {
      const $I k = first + e / 64, column = side + e % 64;
      $T value = 0;
      if (k < $k && column < $n) {
$ofColumn
$atK
$right
      }
      right[e / 64][e % 64] = value;
    }
  }
  BARRIER();
  for (int32_t k = 0; k < 16; ++k) {
    $T a[4], b[4];
    for (int32_t i = 0; i < 4; ++i) {
      a[i] = left[k][down + 16 * i];
      b[i] = right[k][across + 16 * i];
    }
    for (int32_t r = 0; r < 4; ++r)
      for (int32_t c = 0; c < 4; ++c) sums[r][c] = MULADD_$K(a[r], b[c], sums[r][c]);
  }
  BARRIER();
}
for (int32_t r = 0; r < 4; ++r)
  for (int32_t c = 0; c < 4; ++c) {
    const $I row = top + down + 16 * r, column = side + across + 16 * c;
    if (row >= $m || column >= $n) continue;
    const $I point = (batch * $m + row) * $n + column;
    $T given = sums[r][c];
$store
  }
)";

// Tiles of one item: rows of vectors in registers, for all rows of its part one tile after the other. The last ones
// begin early enough to be whole, and store what is their own.
constexpr std::string_view kOwnTiles =
    R"(const $I ownSide = ($I)ITEM(0) * $columns, side = ownSide + $columns <= $n ? ownSide : $n - $columns;
const $I batch = ($I)ITEM(1) / $parts, first = ($I)ITEM(1) % $parts * $part;
const $I end = first + $part < $m ? first + $part : $m;
$panel
for ($I ownTop = first; ownTop < end; ownTop += $rows) {
  const $I top = ownTop + $rows <= $m ? ownTop : $m - $rows;
  $V sums[$rows];
#pragma unroll
  for (int32_t r = 0; r < $rows; ++r) sums[r] = ($V)(0);
  for ($I k = 0; k < $k; ++k) {
$b
#pragma unroll
    for (int32_t r = 0; r < $rows; ++r) {
      const $I row = top + r;
      $T value = 0;
$left
      const $V wide = ($V)(($E)value);
      sums[r] = $muladd;
    }
  }
  for (int32_t r = 0; r < $rows; ++r) {
    const $I row = top + r;
    if (row < ownTop || row >= end) continue;
    $E line[$columns];
    vstore$columns(sums[r], 0, line);
    for (int32_t c = 0; c < $columns; ++c) {
      const $I column = side + c;
      if (column < ownSide) continue;
      const $I point = (batch * $m + row) * $n + column;
      $T given = ($T)line[c];
$store
    }
  }
}
)";

// One row of the right matrix, in the columns of a tile, as $name[0] to $name[$columns - 1].
constexpr std::string_view kRightRow = R"($atK
for (int32_t c = 0; c < $columns; ++c) {
  const $I column = side + c;
$kept
  $T value = 0;
$right
  $name = value;
}
)";

Launch sharedTiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store) {
  const int64_t down = (p.m + 63) / 64, across = (p.n + 63) / 64;
  std::string ofColumn;
  for (const auto& [name, value] : p.ofColumn)
    ofColumn += fmt::format("const {} {} = {};\n", p.columnType, name, value);
  const std::string text = fill(kSharedTiles, {{"T", typeName(sums)},
                                               {"K", std::string(elemName(sums))},
                                               {"I", writer.indexType()},
                                               {"m", p.m},
                                               {"n", p.n},
                                               {"k", p.k},
                                               {"tiles", down},
                                               {"left", p.left},
                                               {"ofColumn", ofColumn},
                                               {"atK", p.atK},
                                               {"right", p.right},
                                               {"store", store}});
  return writer.finish(text, {across * 16, p.batch * down * 16}, {16, 16});
}

// Where the right matrix is used for several tiles, its columns are laid side by side first.
Launch ownTiles(KernelWriter& writer, const Product& p, ElemKind sums, const std::string& store) {
  constexpr int64_t kRows = 8, kMostColumns = 16, kEnoughItems = 32;
  int64_t columns = 1;
  while (2 * columns <= std::min(p.n, kMostColumns)) columns *= 2;
  const int64_t rows = std::min(p.m, kRows), across = (p.n + columns - 1) / columns;
  int64_t part = (p.m + rows - 1) / rows * rows;
  while (part > rows && across * p.batch * ((p.m + part - 1) / part) < kEnoughItems)
    part = (part / 2 + rows - 1) / rows * rows;
  const int64_t parts = (p.m + part - 1) / part;
  const bool packs =
      part > rows && std::max<int64_t>(p.k, 1) * columns * elemBytes(sums) <= writer.shape().localBytes / 2;
  const std::string element = isFloat(sums) ? typeName(sums) : elemBytes(sums) == 4 ? "uint" : "ulong";
  const std::string vector = fmt::format("{}{}", element, columns);
  std::string starts, kept;
  for (const auto& [name, value] : p.ofColumn) {
    starts += fmt::format(
        "{0} {1}Of[{2}];\nfor (int32_t c = 0; c < {2}; ++c) {{ const {3} column = side + c; {1}Of[c] = {4}; }}\n",
        p.columnType, name, columns, writer.indexType(), value);
    kept += fmt::format("const {} {} = {}Of[c];\n", p.columnType, name, name);
  }
  const auto rightRow = [&](const std::string& name) {
    return fill(kRightRow, {{"T", typeName(sums)},
                            {"I", writer.indexType()},
                            {"columns", columns},
                            {"kept", kept},
                            {"atK", p.atK},
                            {"right", p.right},
                            {"name", name}});
  };
  std::string panel = starts, b;
  if (packs) {
    panel += fmt::format("LOCAL {} packed[{}];\nfor ({} k = 0; k < {}; ++k) {{\n{}}}\n", element,
                         std::max<int64_t>(p.k, 1) * columns, writer.indexType(), p.k,
                         rightRow(fmt::format("packed[k * {} + c]", columns)));
    b = fmt::format("const {} b = vload{}(k, packed);", vector, columns);
  } else {
    b = fmt::format("{} rights[{}];\n{}const {} b = vload{}(0, rights);", element, columns, rightRow("rights[c]"),
                    vector, columns);
  }
  const std::string text = fill(
      kOwnTiles,
      {{"T", typeName(sums)},
       {"E", element},
       {"V", vector},
       {"I", writer.indexType()},
       {"m", p.m},
       {"n", p.n},
       {"k", p.k},
       {"rows", rows},
       {"columns", columns},
       {"part", part},
       {"parts", parts},
       {"panel", panel},
       {"b", b},
       {"left", p.left},
       {"muladd", isFloat(sums) ? fmt::format("MULADD_{}(wide, b, sums[r])", elemName(sums)) : "wide * b + sums[r]"},
       {"store", store}});
  return writer.finish(text, {across, p.batch * parts}, {1, 1});
}

Launch tiles(KernelWriter& writer, const Product& p, ElemKind sums) {
  const std::string store = p.finish + writer.resultIndices("point") + writer.epilogue();
  const bool shared = writer.shape().sharesLocal && writer.shape().groupItems >= 256;
  return shared ? sharedTiles(writer, p, sums, store) : ownTiles(writer, p, sums, store);
}

// ---------------------------------------------------------------- windows

struct Sliding {
  Window window;
  std::vector<int64_t> input, strides;  // spatial
  int64_t plane = 1;                    // elements of a channel of the input
  std::string type;                     // of positions

  Sliding(Window w, const Shape& x, const std::string& indexType) : window(std::move(w)), type(indexType) {
    input.assign(x.dims().begin() + 2, x.dims().end());
    strides = Shape(input).strides();
    for (const int64_t extent : input) plane *= extent;
    constexpr int64_t kFar = 1 << 20;
    for (const auto* list : {&window.strides, &window.dilations, &window.before, &window.after, &window.kernel})
      for (const int64_t number : *list)
        if (number > kFar) type = "int64_t";
  }

  // Whether every place of the result sees the same place of the input alone.
  bool copiesInput(int64_t taps) const {
    const auto all = [](const std::vector<int64_t>& list, int64_t value) {
      return std::all_of(list.begin(), list.end(), [&](int64_t one) { return one == value; });
    };
    return taps == 1 && all(window.strides, 1) && all(window.before, 0) && all(window.after, 0);
  }

  std::string position(size_t axis, const std::string& result, const std::string& tap) const {
    return fmt::format("({})({}) * {} - {} + ({})({}) * {}", type, result, window.strides[axis], window.before[axis],
                       type, tap, window.dilations[axis]);
  }
  std::string inside(size_t axis) const { return fmt::format("q{0} >= 0 && q{0} < {1}", axis, input[axis]); }
  // The element of a channel at q0, q1, ...
  std::string element() const {
    std::string text = "0";
    for (size_t a = 0; a < input.size(); ++a) text += fmt::format(" + q{} * {}", a, strides[a]);
    return text;
  }

  // Loops over the taps t0, t1, ... of the window of the result at i2, i3, ..., without branches, so that items go side
  // by side: statements on `padded`, whether it lies in the padded input, `inside`, whether in the input itself, and
  // `from`, the element of the channel (any, where it is not inside).
  std::string loops(const std::string& each) const {
    constexpr int64_t kFewTaps = 32;
    int64_t taps = 1;
    for (const int64_t extent : window.kernel) taps *= extent;
    TextBlock out;
    std::string padded = "true", met = plane == 0 ? "false" : "true";
    for (size_t a = 0; a < input.size(); ++a) {
      if (taps <= kFewTaps) out.line("#pragma unroll");
      out.open(fmt::format("for ({0} t{1} = 0; t{1} < {2}; ++t{1})", type, a, window.kernel[a]));
      out.line(
          fmt::format("const {} q{} = {};", type, a, position(a, fmt::format("i{}", a + 2), fmt::format("t{}", a))));
      padded += fmt::format(" && q{} < {}", a, input[a] + window.after[a]);
      met += " && " + inside(a);
    }
    out.line(fmt::format("const bool padded = {}, inside = {};", padded, met));
    out.line(fmt::format("const {} from = inside ? {} : 0;", type, element()));
    out.line(each);
    for (size_t a = 0; a < input.size(); ++a) out.close();
    return out.take();
  }
};

Window windowIn(const Attrs& attrs, std::vector<int64_t> kernel) {
  Result<Window> window = windowOf(attrs, std::move(kernel));
  AGLOW_CHECK(window.ok(), "a window that was checked");
  return *std::move(window);
}

}  // namespace

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

std::vector<Launch> convLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const Shape &x = writer.in(0).shape(), &filter = writer.in(1).shape(), &y = writer.out().shape();
  const ElemKind kind = writer.kindOf(0), sums = nest::computedKind(kind);
  const int64_t group = writer.attrs().integer("group"), depth = filter[1], outputs = y[1] / group;
  const Sliding sliding(windowIn(writer.attrs(), {filter.dims().begin() + 2, filter.dims().end()}), x,
                        writer.indexType());
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
    if (!bias.empty()) text += fmt::format("given = {};\n", bias);
    return {writer.perPoint(writer.out().elements(), text + writer.epilogue())};
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

// NaN wins; the first of equal elements, in the order of the taps.
std::vector<Launch> poolLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const ElemKind kind = writer.kindOf(0), computed = nest::computedKind(kind);
  const Sliding sliding(windowIn(writer.attrs(), writer.attrs().ints("kernel")), writer.in(0).shape(),
                        writer.indexType());
  writer.input(0, "x");
  std::string text = writer.resultIndices("point");
  text +=
      fmt::format("const {} plane = (i0 * {} + i1) * {};\n", writer.indexType(), writer.out().dim(1), sliding.plane);
  const std::string value = sliding.plane == 0 ? "0" : convertedText(kind, computed, "x[plane + from]");
  if (opOf(writer.attrs().op()) == Op::AvgPool) {
    text += "double sum = 0;\nint32_t count = 0;\n";
    text += sliding.loops(fmt::format("count += {} ? 1 : 0;\nsum += inside ? (double){} : 0.0;",
                                      writer.attrs().flag("count_include_pad") ? "padded" : "inside", value));
    text += fmt::format("const {0} given = ({0})(sum / (double)(count > 1 ? count : 1));\n", typeName(computed));
    return {writer.perPoint(writer.out().elements(), text + writer.epilogue())};
  }
  uint64_t lowest = 0;
  if (isFloat(computed))
    lowest = std::bit_cast<uint64_t>(lowestOf<double>(kind));
  else
    lowest = isSigned(computed) ? static_cast<uint64_t>(lowestOf<int64_t>(kind)) : lowestOf<uint64_t>(kind);
  const bool indices = opOf(writer.attrs().op()) == Op::MaxPoolWithIndices;
  text += fmt::format("{} given = {};\n", typeName(computed), numberText(computed, lowest));
  if (indices)
    text += "int64_t winner = -1;\n" + sliding.loops(fmt::format(R"(const {} value = {};
if (inside && (winner < 0 || given < value || (value != value && given == given))) {{
  given = value;
  winner = plane + from;
}})",
                                                                 typeName(computed), value));
  else
    text +=
        sliding.loops(fmt::format("given = inside ? {} : given;", appliedText(Scalar::Max, computed, "given", value)));
  text += writer.epilogue();
  if (indices) {
    writer.result(1, "winners");
    text += "winners[point] = winner;\n";
  }
  return {writer.perPoint(writer.out().elements(), text)};
}

}  // namespace aglow::codegen
