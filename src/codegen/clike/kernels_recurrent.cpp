// Recurrent layers whole: the inputs of all steps times their weights first, as one product; then step after step. On
// processors an item has a few rows of the batch and computes with vectors along their states; on GPUs a group does,
// whose items share what is multiplied. Where that is quicker each step is a kernel, for which all units work.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "codegen/clike/recurrent_layer.h"
#include "codegen/clike/tiles.h"
#include "codegen/nest/kinds.h"
#include "support/sizes.h"

namespace aglow::codegen {

namespace {

constexpr ElemKind kFloat = ElemKind::Float32;

// Which rows and which part of the state, and which step.
constexpr std::string_view kPlace =
    R"(const $I direction = $down / $blocks, first = $down % $blocks * $R;
const $I from = $across * $slice, to = from + $slice < $wide ? from + $slice : $wide;
)";
constexpr std::string_view kSteps = "for ($I index = 0; index < $steps; ++index) {\n";
// Each kernel reads one of two counters and sets the other, so that all of its items see the same.
constexpr std::string_view kStep = R"({
GLOBAL int32_t* counters = (GLOBAL int32_t*)(work + INT64_C($counters));
const $I index = counters[$reads];
if (ITEM(0) == 0 && ITEM(1) == 0) counters[1 - $reads] = ($C)index + $on;
)";
constexpr std::string_view kDirection = "const $I step = $back ? $steps - 1 - index : index;\n";

// One item: rows of vectors in registers, for all of its part of the state one tile after the other.
constexpr std::string_view kOwn = R"({
GLOBAL const float* given = $given;
for ($I j = from; j < to; j += $L) {
  $V sums[$R][$G];
#pragma unroll
  for (int32_t r = 0; r < $R; ++r)
#pragma unroll
    for (int32_t g = 0; g < $G; ++g) sums[r][g] = ($V)(0.0f);
  GLOBAL const float* weights = work + INT64_C($weights) + direction * $ofDirection + j * $ofColumn + $first;
  for (int32_t k = 0; k < $hidden; ++k, weights += $line) {
#pragma unroll
    for (int32_t g = 0; g < $G; ++g) {
      const $V weight = vload$L(0, weights + g * $block);
#pragma unroll
      for (int32_t r = 0; r < $R; ++r) sums[r][g] = MULADD_f32(($V)(given[r * $wide + k]), weight, sums[r][g]);
    }
  }
  for (int32_t r = 0; r < $R; ++r) {
    const $I row = first + r;
    if (row >= $batch) break;
$sums
$cell
  }
}
}
)";

// A group: items have neighbours of the state, and parts of what is multiplied; sums are added up in their order.
constexpr std::string_view kShared = R"({
$held
for ($I tile = from; tile < to; tile += $across) {
  {
    const $I j = tile + own < to ? tile + own : to - 1;
    float sum[$R][$G];
    for (int32_t r = 0; r < $R; ++r)
      for (int32_t g = 0; g < $G; ++g) sum[r][g] = 0;
    const int32_t end = (part + 1) * $part < $hidden ? (part + 1) * $part : $hidden;
    GLOBAL const float* weights =
        work + INT64_C($weights) + direction * $ofDirection + part * $part * $line + $first + j;
#pragma unroll 4
    for (int32_t k = part * $part; k < end; ++k, weights += $line) {
#pragma unroll
      for (int32_t g = 0; g < $G; ++g) {
        const float weight = weights[g * $block];
#pragma unroll
        for (int32_t r = 0; r < $R; ++r) sum[r][g] = MULADD_f32(given[r * $wide + k], weight, sum[r][g]);
      }
    }
    for (int32_t r = 0; r < $R; ++r)
      for (int32_t g = 0; g < $G; ++g) sums[((part * $R + r) * $G + g) * $across + own] = sum[r][g];
  }
  BARRIER();
  for (int32_t e = item; e < $R * $across; e += $items) {
    const int32_t r = e / $across, lane = e % $across;
    const $I row = first + r, j = tile + lane;
    if (row >= $batch || j >= to) continue;
$sums
$cell
  }
  BARRIER();
}
}
)";

class Layer {
public:
  Layer(const Program& program, const Instr& instr, const DeviceShape& shape)
      : program_(program),
        instr_(instr),
        shape_(shape),
        s_(sizesOf(program, bodyOf(instr).front())),
        f_(chooseForm(s_, shape)),
        at_(s_, f_) {}

  static RecurrentSizes sizesOf(const Program& program, const Instr& anchor) {
    return {anchor.attrs, program[anchor.inputs()[0].region].type, program[anchor.inputs()[2].region].type};
  }

  Launch begin() const;
  Launch products() const;
  Launch whole() const;
  Launch step(int64_t phase, int64_t counter) const;
  const RecurrentForm& form() const { return f_; }
  const RecurrentSizes& sizes() const { return s_; }

private:
  KernelWriter writer() const { return {program_, instr_, shape_}; }
  std::string element(KernelWriter& w, size_t input, const std::string& name, const std::string& number) const;
  StateAddresses addresses() const;
  std::string phaseText(KernelWriter& w, int64_t phase) const;
  Launch finished(KernelWriter& w, const std::string& loop, const std::string& phases) const;

  const Program& program_;
  const Instr& instr_;
  const DeviceShape& shape_;
  RecurrentSizes s_;
  RecurrentForm f_;
  RecurrentPlaces at_;
};

std::string Layer::element(KernelWriter& w, size_t input, const std::string& name, const std::string& number) const {
  w.input(input, name);
  return elementText(w.kindOf(input), kFloat, fmt::format("{}[{}]", name, number));
}

// Weights as steps read them, states before the first, and the counters.
Launch Layer::begin() const {
  KernelWriter w = writer();
  w.scratch("work", kFloat);
  const int64_t wide = f_.padded(s_), hidden = s_.hidden;
  std::string text;
  int64_t points = 0;
  const auto part = [&](int64_t place, const std::vector<int64_t>& dims, const std::string& there,
                        const std::string& value) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    text += fmt::format(
        "if (point < {0}) {{\nconst {1} at = point - {2};\n{3}work[INT64_C({4}) + at] = {5} ? {6} : "
        "0.0f;\nreturn;\n}}\n",
        points + count, w.indexType(), points, w.indices(dims, "at"), place, there, value);
    points += count;
  };
  const int64_t block = f_.block(s_);
  const std::string column = fmt::format("i1 * {} + i4", block);
  part(at_.weights, {s_.directions, wide / block, hidden, s_.gates, block}, fmt::format("{} < {}", column, hidden),
       element(w, 2, "r", fmt::format("((i0 * {} + i3) * {} + {}) * {} + i2", s_.gates, hidden, column, hidden)));
  part(at_.counters, {2}, "i0 < 0", "0.0f");
  const auto state = [&](int64_t place, size_t initial, const std::string& name, int64_t copies) {
    const std::string inside = fmt::format("i0 == 0 && i2 < {} && i3 < {}", s_.batch, hidden);
    const bool given = initial != 0 && w.has(initial);
    part(place, {copies, s_.directions, at_.paddedRows, wide}, given ? inside : "i0 < 0",
         given ? element(w, initial, name, fmt::format("(i1 * {} + i2) * {} + i3", s_.batch, hidden)) : "0.0f");
  };
  state(at_.states, 5, "initialH", 2);
  if (s_.cell == Op::LSTM) state(at_.cells, 6, "initialC", 1);
  if (s_.halves) state(at_.seen, 0, "", 1);
  if (s_.cell == Op::LSTM && w.has(7))
    part(at_.peepholes, {s_.directions, 3, wide}, fmt::format("i2 < {}", hidden),
         element(w, 7, "p", fmt::format("(i0 * 3 + i1) * {} + i2", hidden)));
  if (s_.cell == Op::GRU && !s_.halves && w.has(3))
    part(at_.late, {s_.directions, wide}, fmt::format("i1 < {}", hidden),
         element(w, 3, "b", fmt::format("i0 * {} + {} + i1", 6 * hidden, 5 * hidden)));
  return w.perPoint(points, text);
}

// Inputs times weights, and the biases, of which there are two. The state's part of the last gate of a GRU passes the
// reset gate together with its bias.
Launch Layer::products() const {
  KernelWriter w = writer();
  w.input(0, "x");
  w.input(1, "w");
  w.scratch("work", kFloat);
  const int64_t columns = s_.columns(), rows = s_.steps * s_.batch;
  Product p{.sizes = {.m = rows, .n = s_.directions * columns, .k = s_.width}};
  const auto side = [&](size_t input, const char* name, const char* line) {
    return Side{.pointer = name,
                .number = fmt::format("(({}){}) * {} + k", w.indexType(), line, s_.width),
                .kind = w.kindOf(input),
                .alongK = true,
                .whole = w.kindOf(input) == p.sizes.held ? w.together(input, s_.width) : 1};
  };
  p.left = side(0, "x", "row");
  p.right = side(1, "w", "column");
  p.sizes.alongK = true;
  p.sizes.gathers = p.right.whole == 1;
  std::string bias;
  if (w.has(3)) {
    const std::string first = fmt::format("direction * {} + at", 2 * columns);
    const std::string input = element(w, 3, "b", first);
    const std::string ofState = elementText(w.kindOf(3), kFloat, fmt::format("b[{} + {}]", first, columns));
    const bool late = s_.cell == Op::GRU && !s_.halves;
    bias = late ? fmt::format(" + ({0} + (at < {2} ? {1} : 0.0f))", input, ofState, 2 * s_.hidden)
                : fmt::format(" + ({} + {})", input, ofState);
  }
  const std::string store = fill(R"({
const $I direction = column / $columns, at = column % $columns;
work[INT64_C($products) + ((direction * $rows + row) * $gates + at / $hidden) * $wide + at % $hidden] = given$bias;
}
)",
                                 {{"I", w.indexType()},
                                  {"columns", columns},
                                  {"products", at_.products},
                                  {"rows", rows},
                                  {"gates", s_.gates},
                                  {"hidden", s_.hidden},
                                  {"wide", f_.padded(s_)},
                                  {"bias", bias}});
  if (!sharesTiles(p.sizes.sums, shape_)) return itemTiles(w, p, store);
  return groupTiles(w, p, chooseTile(p.sizes, shape_, false), [&](KernelWriter&) { return Handed{.one = store}; })
      .front();
}

// States are in the working memory, or in local memory where a group has all it needs.
StateAddresses Layer::addresses() const {
  if (f_.shared && !f_.stepwise)
    return {.before = fmt::format("states + (index % 2 * {} + r) * {} + j", f_.rows, s_.hidden),
            .after = fmt::format("states + ((1 - index % 2) * {} + r) * {} + j", f_.rows, s_.hidden),
            .seen = fmt::format("states + ({} + r) * {} + j", 2 * f_.rows, s_.hidden)};
  const auto at = [&](int64_t place, const char* which) {
    return fmt::format("work + INT64_C({}) + (({} * {} + direction) * {} + row) * {} + j", place, which, s_.directions,
                       at_.paddedRows, f_.padded(s_));
  };
  return {.before = at(at_.states, "index % 2"), .after = at(at_.states, "(1 - index % 2)"), .seen = at(at_.seen, "0")};
}

std::string Layer::phaseText(KernelWriter& w, int64_t phase) const {
  const int64_t firstGate = s_.halves && phase == 1 ? 2 : 0;
  const int64_t gates = s_.halves ? 2 - phase : s_.gates, wide = f_.padded(s_), block = f_.block(s_);
  const bool seen = firstGate > 0;
  std::string sums;
  for (int64_t g = 0; g < gates; ++g) {
    const int64_t number = firstGate + g;
    if (!f_.shared) {
      sums += fmt::format("const {} sum{} = sums[r][{}];\n", vectorName(kFloat, f_.lanes), number, g);
      continue;
    }
    sums += fmt::format(
        "float sum{} = 0;\nfor (int32_t p = 0; p < {}; ++p) sum{} += sums[((p * {} + r) * {} + {}) * {} + "
        "lane];\n",
        number, f_.parts, number, f_.rows, gates, g, f_.across);
  }
  const std::string stored =
      fmt::format("work + INT64_C({}) + (({} * {} + direction) * {} + first) * {}", seen ? at_.seen : at_.states,
                  seen ? "0" : "index % 2", s_.directions, at_.paddedRows, wide);
  std::string held;
  if (f_.shared && f_.stepwise)
    held = fmt::format(
        "GLOBAL const float* stored = {};\nfor (int32_t e = item; e < {}; e += {}) states[e] = stored[e];\n"
        "BARRIER();\nLOCAL const float* given = states;\n",
        stored, f_.rows * wide, f_.items());
  else if (f_.shared)
    held = seen ? fmt::format("LOCAL const float* given = states + {};\n", 2 * f_.rows * wide)
                : fmt::format("LOCAL const float* given = states + index % 2 * {};\n", f_.rows * wide);
  return fill(f_.shared ? kShared : kOwn, {{"I", w.indexType()},
                                           {"V", vectorName(kFloat, f_.lanes)},
                                           {"L", f_.lanes},
                                           {"R", f_.rows},
                                           {"G", gates},
                                           {"given", stored},
                                           {"held", held},
                                           {"weights", at_.weights},
                                           {"hidden", s_.hidden},
                                           {"wide", wide},
                                           {"line", s_.gates * block},
                                           {"block", block},
                                           {"first", firstGate * block},
                                           {"ofDirection", s_.hidden * s_.gates * wide},
                                           {"ofColumn", s_.hidden * s_.gates},
                                           {"batch", s_.batch},
                                           {"across", f_.across},
                                           {"part", ceilDiv(s_.hidden, f_.parts)},
                                           {"items", f_.items()},
                                           {"sums", sums},
                                           {"cell", cellText(w, s_, f_, at_, addresses(), phase)}});
}

Launch Layer::finished(KernelWriter& w, const std::string& loop, const std::string& phases) const {
  const std::string& type = w.indexType();
  std::string text = fill(kPlace, {{"I", type},
                                   {"across", f_.shared ? "groupAcross" : fmt::format("({})ITEM(0)", type)},
                                   {"down", f_.shared ? "groupDown" : fmt::format("({})ITEM(1)", type)},
                                   {"blocks", f_.blocks(s_)},
                                   {"R", f_.rows},
                                   {"slice", f_.slice},
                                   {"wide", f_.padded(s_)}});
  if (f_.shared) {
    const int64_t held = f_.rows * f_.padded(s_), copies = f_.stepwise ? 1 : s_.halves ? 3 : 2;
    text += fmt::format(
        "LOCAL_ARRAY float states[{}];\nLOCAL_ARRAY float sums[{}];\nconst int32_t item = "
        "(int32_t)LOCAL_ITEM(0), part = item / {}, own = item % {};\n",
        copies * held, f_.items() * f_.rows * s_.gates, f_.across, f_.across);
    if (!f_.stepwise)
      text += fmt::format(
          "for (int32_t e = item; e < {}; e += {}) states[e] = e < {} ? work[INT64_C({}) + (direction * "
          "{} + first) * {} + e] : 0;\nBARRIER();\n",
          copies * held, f_.items(), held, at_.states, at_.paddedRows, f_.padded(s_));
  }
  const std::string back = s_.directions == 2 ? "direction == 1" : s_.reverse ? "true" : "false";
  text += loop + fill(kDirection, {{"I", type}, {"back", back}, {"steps", s_.steps}}) + phases + "}\n";
  const int64_t across = f_.slices(s_), down = s_.directions * f_.blocks(s_);
  return f_.shared ? w.inGroups(text, across, down, {f_.items(), 1}) : w.finish(text, {across, down}, {1, 1});
}

Launch Layer::whole() const {
  KernelWriter w = writer();
  w.scratch("work", kFloat);
  if (w.has(4)) w.input(4, "lengths");
  std::string phases;
  for (int64_t phase = 0; phase < s_.phases(); ++phase) phases += phaseText(w, phase);
  return finished(w, fill(kSteps, {{"I", w.indexType()}, {"steps", s_.steps}}), phases);
}

Launch Layer::step(int64_t phase, int64_t counter) const {
  KernelWriter w = writer();
  w.scratch("work", kFloat);
  if (w.has(4)) w.input(4, "lengths");
  return finished(w,
                  fill(kStep, {{"I", w.indexType()},
                               {"C", "int32_t"},
                               {"counters", at_.counters},
                               {"reads", counter},
                               {"on", phase + 1 == s_.phases() ? 1 : 0}}),
                  phaseText(w, phase));
}

}  // namespace

Decision takesRecurrent(const Attrs& attrs, const OperandTypes& types, const DeviceShape& shape) {
  const Type &x = *types.in[0], &r = *types.in[2];
  // States stay f32 from step to step; of narrower kinds the rounding of each matters.
  constexpr ElemKind kKinds[] = {ElemKind::Float32, ElemKind::Float16, ElemKind::BFloat16};
  if (std::find(std::begin(kKinds), std::end(kKinds), x.kind()) == std::end(kKinds))
    return Decision::no(fmt::format("needs f32, f16 or bf16, has {}", elemName(x.kind())));
  for (const Type* type : {types.out[0], types.in[0]})
    if (type->elements() == 0) return Decision::no(fmt::format("needs elements, has {}", type->text()));
  if (!shape.sharesLocal && !shape.vectors) return Decision::no("needs a language with vectors, has none");
  const RecurrentSizes sizes(attrs, x, r);
  if (chooseForm(sizes, shape).lanes > 0) return Decision::yes();
  // One row at a time needs the least of both.
  const RecurrentForm least{.shared = shape.sharesLocal};
  if (!shape.sharesLocal || RecurrentPlaces(sizes, least).floats > kMostFloats)
    return Decision::no(fmt::format("needs working memory of at most {} floats", kMostFloats));
  return Decision::no(
      fmt::format("needs local memory for states of {} elements, has {} bytes", sizes.hidden, shape.localBytes));
}

int64_t recurrentScratch(const Program& program, const Instr& anchor, const DeviceShape& shape) {
  const RecurrentSizes sizes = Layer::sizesOf(program, anchor);
  return RecurrentPlaces(sizes, chooseForm(sizes, shape)).floats * elemBytes(kFloat);
}

std::vector<Launch> recurrentLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  const Layer layer(program, instr, shape);
  std::vector<Launch> launches{layer.begin(), layer.products()};
  if (!layer.form().stepwise) {
    launches.push_back(layer.whole());
    return launches;
  }
  // Two texts for all steps.
  const int64_t phases = layer.sizes().phases();
  const Launch kernels[] = {layer.step(0, 0), layer.step(phases - 1, 1)};
  for (int64_t i = 0; i < layer.sizes().steps * phases; ++i) launches.push_back(kernels[i % 2]);
  return launches;
}

}  // namespace aglow::codegen
