// Which kernels compute recurrent layers whole.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backends/cpu/kernels/reasons.h"
#include "backends/cpu/kernels/recurrent/recurrent_desc.h"
#include "ops/recurrent.h"
#include "support/check.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

static_assert(static_cast<int64_t>(Activation::Kind::Relu) == kRelu &&
              static_cast<int64_t>(Activation::Kind::Affine) == kAffine &&
              static_cast<int64_t>(Activation::Kind::HardSigmoid) == kHardSigmoid &&
              static_cast<int64_t>(Activation::Kind::Softplus) == kSoftplus);

constexpr int64_t kBytes = sizeof(float);

Decision whole(const Problem& problem, const Machine&) {
  if (Decision no = needsF32(problem); !no) return no;
  if (Decision no = needsElements({&problem.outType()}); !no) return no;
  if (problem.inType(0).dim(2) == 0) return Decision::no("needs inputs with elements, has a width of 0");
  return Decision::yes();
}

uint32_t floatBits(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

void setFunctions(RecurrentDesc& d, const Attrs& attrs) {
  const Result<std::vector<Activation>> known = activationsOf(attrs);
  AGLOW_CHECK(known.ok(), "the type rule has seen the functions");
  const std::vector<Activation>& functions = *known;
  const size_t each = functions.size() / static_cast<size_t>(d.directions);
  for (size_t i = 0; i < functions.size(); ++i)
    d.functions[i / each][i % each] = {.kind = static_cast<int64_t>(functions[i].kind),
                                       .alpha = floatBits(functions[i].alpha),
                                       .beta = floatBits(functions[i].beta)};
  d.clips = attrs.real("clip") > 0 ? 1 : 0;
  d.clip = floatBits(attrs.real("clip"));
}

void setOperands(RecurrentDesc& d, const Problem& problem) {
  const auto results = static_cast<int64_t>(problem.out.size()), inputs = static_cast<int64_t>(problem.in.size());
  const auto result = [&](int i) {
    return i < results && problem.out[static_cast<size_t>(i)] != nullptr ? int64_t{i} : kAbsent;
  };
  const auto input = [&](int i) { return problem.has(i) ? results + i : kAbsent; };
  d.y = 0;
  d.lastH = result(1);
  d.lastC = result(2);
  d.x = input(0);
  d.w = input(1);
  d.r = input(2);
  d.bias = input(3);
  d.lengths = input(4);
  d.initialH = input(5);
  d.initialC = input(6);
  d.peepholes = input(7);
  d.scratch = results + inputs;
  d.longLengths = problem.has(4) && problem.inType(4).kind() == ElemKind::Int64 ? 1 : 0;
}

// Where everything lies in the scratch memory, which begins at a line of the cache. Returns its floats.
int64_t placeScratch(RecurrentDesc& d) {
  constexpr int64_t kLineFloats = 16;
  const int64_t columns = d.gates * d.hidden, states = d.directions * d.batch * d.hidden;
  int64_t next = 0;
  const auto place = [&](int64_t floats) {
    const int64_t at = next;
    next += ceilDiv(floats, kLineFloats) * kLineFloats;
    return at;
  };
  d.products = place(d.directions * d.steps * d.batch * columns);
  d.sums = place(d.directions * columns);
  d.fresh = place(d.directions * d.batch * columns);
  d.h = place(2 * states);
  d.c = d.cell == kCellLstm ? place(states) : 0;
  d.seen = d.cell == kCellGru ? place(states) : 0;
  if (d.lengths == kAbsent) return next;
  constexpr int64_t kNumber = sizeof(int64_t) / sizeof(float);
  d.order = place(kNumber * d.batch);
  d.active = place(kNumber * d.steps);
  d.starts = place(kNumber * (d.steps + 1));
  d.packed = place(d.steps * d.batch * d.width);
  return next;
}

template <RecurrentCell cell>
KernelPlan planWhole(const Problem& problem, const Machine& machine) {
  const Shape &x = problem.inType(0).shape(), &r = problem.inType(2).shape();
  RecurrentDesc d{};
  d.cell = cell;
  d.steps = x[0];
  d.batch = x[1];
  d.width = x[2];
  d.hidden = r[2];
  d.gates = r[1] / r[2];
  d.directions = directionsOf(problem.attrs);
  d.reverse = problem.attrs.word("direction") == "reverse" ? 1 : 0;
  if constexpr (cell == kCellGru) d.stateFirst = problem.attrs.flag("linear_before_reset") ? 1 : 0;
  if constexpr (cell == kCellLstm) d.inputForget = problem.attrs.flag("input_forget") ? 1 : 0;
  setFunctions(d, problem.attrs);
  setOperands(d, problem);
  const int64_t scratch = placeScratch(d);

  // A chunk of weights stays in the second-level cache while all inputs pass it.
  const int64_t columns = d.gates * d.hidden, most = machine.lanes == 16 ? 4 : 3;
  const auto evenly = [&](int64_t count) { return ceilDiv(count, ceilDiv(count, most)); };
  constexpr int64_t kGroup = 8, kMostChunk = 256;
  d.chunk = std::clamp<int64_t>(machine.l2 / 4 / (d.width * kBytes) / kGroup * kGroup, kGroup, kMostChunk);
  d.tile = evenly(d.steps * d.batch);
  d.rows = evenly(d.batch);
  // Slices are whole vectors, so that all their elements are computed alike.
  constexpr int64_t kSlices = 32;
  d.slice = ceilDiv(ceilDiv(d.hidden, kSlices), machine.lanes) * machine.lanes;
  d.phases = d.cell == kCellGru && d.stateFirst == 0 ? 2 : 1;
  const int64_t states = d.directions * ceilDiv(d.batch, d.rows) * ceilDiv(d.hidden, d.slice);

  KernelPlan plan;
  plan.steps = {{.kernel = "recurrent_begin", .descriptor = descriptorBytes(d)},
                {.kernel = fmt::format("recurrent_inputs_w{}", machine.lanes),
                 .descriptor = descriptorBytes(d),
                 .units = d.directions * ceilDiv(columns, d.chunk)},
                {.kernel = fmt::format("recurrent_steps_w{}", machine.lanes),
                 .descriptor = descriptorBytes(d),
                 .units = states,
                 .rounds = d.steps * d.phases}};
  if (d.lengths != kAbsent)
    plan.steps.insert(plan.steps.begin() + 1,
                      {.kernel = "recurrent_pack", .descriptor = descriptorBytes(d), .units = d.steps});
  plan.scratchBytes = scratch * kBytes;
  plan.flops = 2. * static_cast<double>(d.directions * d.steps * d.batch) * static_cast<double>(columns) *
               static_cast<double>(d.width + d.hidden);
  return plan;
}

constexpr KernelRow kRows[] = {
    {Op::RNN, "whole", whole, planWhole<kCellRnn>},
    {Op::GRU, "whole", whole, planWhole<kCellGru>},
    {Op::LSTM, "whole", whole, planWhole<kCellLstm>},
};

}  // namespace

std::span<const KernelRow> recurrentRows() { return kRows; }

}  // namespace aglow::cpu
