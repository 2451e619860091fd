// Pools.
#include <fmt/format.h>

#include "codegen/clike/kernel_writer.h"
#include "codegen/clike/sliding.h"
#include "codegen/nest/kinds.h"
#include "ops/all_ops.h"
#include "reference/arithmetic.h"

namespace aglow::codegen {

// NaN wins; the first of equal elements, in the order of the taps.
std::vector<Launch> poolLaunches(const Program& program, const Instr& instr, const DeviceShape& shape) {
  KernelWriter writer(program, instr, shape);
  const ElemKind kind = writer.kindOf(0), computed = nest::computedKind(kind);
  const Sliding sliding(writer.attrs(), writer.attrs().ints("kernel"), writer.in(0).shape(), writer.indexType());
  writer.input(0, "x");
  std::string text = writer.resultIndices("point");
  text +=
      fmt::format("const {} plane = (i0 * {} + i1) * {};\n", writer.indexType(), writer.out().dim(1), sliding.plane);
  const std::string value = sliding.plane == 0 ? zeroText(computed) : elementText(kind, computed, "x[plane + from]");
  if (opOf(writer.attrs().op()) == Op::AvgPool) {
    const ElemKind sums = ElemKind::Float64;
    text += fmt::format("{} sum = {};\nint32_t count = 0;\n", typeName(sums), zeroText(sums));
    text += sliding.loops(fmt::format(
        "count += {} ? 1 : 0;\nsum = {};", writer.attrs().flag("count_include_pad") ? "padded" : "inside",
        appliedText(Scalar::Add, sums, "sum",
                    fmt::format("(inside ? {} : {})", convertedText(computed, sums, value), zeroText(sums)))));
    const std::string count = convertedText(ElemKind::Int32, sums, "(count > 1 ? count : 1)");
    text += fmt::format("const {} given = {};\n", typeName(sums), appliedText(Scalar::Div, sums, "sum", count));
    return {writer.perPoint(writer.out().elements(), text + writer.epilogue(sums))};
  }
  uint64_t lowest = 0;
  if (isFloat(computed))
    lowest = std::bit_cast<uint64_t>(lowestOf<double>(kind));
  else
    lowest = isSigned(computed) ? static_cast<uint64_t>(lowestOf<int64_t>(kind)) : lowestOf<uint64_t>(kind);
  const bool indices = opOf(writer.attrs().op()) == Op::MaxPoolWithIndices;
  text += fmt::format("{} given = {};\n", typeName(computed), numberText(computed, lowest));
  if (indices)
    text += "int64_t winner = -1;\n" +
            sliding.loops(fmt::format(R"(const {} value = {};
if (inside && (winner < 0 || {} || ({} && {}))) {{
  given = value;
  winner = plane + from;
}})",
                                      typeName(computed), value, appliedText(Scalar::Lt, computed, "given", "value"),
                                      appliedText(Scalar::IsNan, computed, "value"),
                                      appliedText(Scalar::Eq, computed, "given", "given")));
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
