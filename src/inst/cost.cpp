// Costs of instructions: a row per operator says how many operations each element of its first result takes.
#include "inst/cost.h"

#include <algorithm>
#include <numeric>

namespace aglow {

namespace {

struct Use {
  const Program& program;
  const Instr& instr;

  const Type& in(size_t i) const { return program[instr.inputs()[i].region].type; }
  const Type& out() const { return program[instr.results()[0].region].type; }
  bool has(size_t i) const { return i < instr.inputs().size() && instr.inputs()[i].region != kNoRegion; }
};

double product(const Shape& shape, int from, int to) {
  return std::accumulate(shape.dims().begin() + from, shape.dims().begin() + to, 1.0,
                         [](double a, int64_t b) { return a * static_cast<double>(b); });
}

double matMul(const Use& use) {
  const Shape& a = use.in(0).shape();
  return a.rank() == 0 ? 0 : 2 * static_cast<double>(a[a.rank() - 1]);
}

double conv(const Use& use) {
  const Shape& filter = use.in(1).shape();
  return 2 * product(filter, 1, filter.rank()) + (use.has(2) ? 1 : 0);
}

// The last block of channels may be filled up; nobody asks for what it holds.
double ofChannels(const Use& use) {
  const Shape& out = use.out().shape();
  const double blocked = product(out, 1, 2) * product(out, out.rank() - 1, out.rank());
  return blocked > 0 ? static_cast<double>(use.instr.attrs.integer("outputs")) / blocked : 0;
}
double blockedConv(const Use& use) { return 2 * product(use.in(1).shape(), 1, 4) * ofChannels(use); }
// As a direct convolution would need, so that both can be compared.
double winogradConv(const Use& use) { return 2 * 9 * product(use.in(1).shape(), 2, 3) * ofChannels(use); }
double depthwiseConv(const Use& use) { return 2 * product(use.in(1).shape(), 1, 3); }

// One vector of the inputs and one of the state for each gate of each of y's elements.
double recurrent(const Use& use) {
  const Shape &w = use.in(1).shape(), &r = use.in(2).shape();
  const double gates = r[2] == 0 ? 0 : static_cast<double>(r[1]) / static_cast<double>(r[2]);
  return 2 * gates * static_cast<double>(w[2] + r[2]);
}

// A score and a share of a value for each key.
double attention(const Use& use) {
  const Shape &k = use.in(1).shape(), &v = use.in(2).shape();
  const double width = static_cast<double>(std::max<int64_t>(v[3], 1));
  return 2 * static_cast<double>(k[2]) * (static_cast<double>(k[3]) / width + 1);
}

double pool(const Use& use) {
  const auto& kernel = use.instr.attrs.ints("kernel");
  return std::accumulate(kernel.begin(), kernel.end(), 1.0, [](double a, int64_t b) { return a * double(b); });
}

double reduce(const Use& use) {
  const auto results = static_cast<double>(std::max<int64_t>(use.out().elements(), 1));
  return static_cast<double>(use.in(0).elements()) / results;
}

double once(const Use&) { return 1; }
double twice(const Use&) { return 2; }

// By name, because some operators exist only where their backend is built.
constexpr struct {
  std::string_view op;
  double (*perResult)(const Use&);
} kRows[] = {
    {"MatMul", matMul},
    {"PackedMatMul", matMul},
    {"Conv", conv},
    {"BlockedConv", blockedConv},
    {"WinogradConv", winogradConv},
    {"DepthwiseConv", depthwiseConv},
    {"RNN", recurrent},
    {"GRU", recurrent},
    {"LSTM", recurrent},
    {"Attention", attention},
    {"MaxPool", pool},
    {"MaxPoolWithIndices", pool},
    {"AvgPool", pool},
    {"Reduce", reduce},
    {"ArgReduce", reduce},
    {"Scan", once},
    {"Quantize", twice},
    {"Dequantize", twice},
};

double perResult(const Use& use) {
  const OpDef& op = use.instr.attrs.op();
  if (op.kind == OpKind::Elementwise)
    return static_cast<double>(
        std::count_if(op.scalar.begin(), op.scalar.end(), [](const Term& t) { return t.op > Scalar::Const; }));
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const auto& r) { return r.op == op.name; });
  return row == std::end(kRows) ? 0 : row->perResult(use);
}

// What is picked from a tensor is no more than what comes out.
int64_t bytesOf(const Program& program, const Instr& instr) {
  int64_t bytes = 0;
  const bool picks =
      instr.kind == Instr::Kind::Compute && (instr.attrs.op().name == "Gather" || instr.attrs.op().name == "Slice");
  for (const Operand& operand : instr.operands) {
    if (operand.region == kNoRegion || operand.access == Access::Scratch) continue;
    int64_t size = program[operand.region].type.bytes();
    if (picks && operand.region == instr.inputs()[0].region)
      size = std::min(size, program[instr.results()[0].region].type.bytes());
    bytes += size;
  }
  return bytes;
}

}  // namespace

static double flopsOf(const Program& program, const Instr& instr) {
  double flops = 0;
  for (const Instr& part : instr.body) flops += flopsOf(program, part);
  if (instr.kind != Instr::Kind::Compute) return flops;
  const Use use{program, instr};
  return perResult(use) * static_cast<double>(use.out().elements());
}

Cost costOf(const Program& program, const Instr& instr) {
  if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) return {};
  return {.flops = flopsOf(program, instr), .bytes = bytesOf(program, instr)};
}

}  // namespace aglow
