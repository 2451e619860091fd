// Which kernels compute attention whole.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backends/cpu/kernels/attention/attention_desc.h"
#include "backends/cpu/kernels/gemm/byte_pack_desc.h"
#include "backends/cpu/kernels/reasons.h"
#include "support/sizes.h"

namespace aglow::cpu {

namespace {

Decision whole(const Problem& problem, const Machine&) {
  const Attrs& attrs = problem.attrs;
  if (Decision no = needsF32(problem); !no) return no;
  if (problem.out[1] != nullptr) return Decision::no("needs weights that nobody reads, has a reader of them");
  if (const double cap = attrs.real("softcap"); cap > 0)
    return Decision::no(fmt::format("needs scores without a cap, has a softcap of {}", cap));
  if (attrs.flag("rounded")) return Decision::no("needs weights as they are, has rounded ones");
  if (const ElemKind precision = attrs.elem("precision"); precision != ElemKind::Float32)
    return Decision::no(fmt::format("needs a softmax in f32, has {}", elemName(precision)));
  if (Decision no = needsElements({&problem.outType(), &problem.inType(0), &problem.inType(1)}); !no) return no;
  if (!problem.has(3)) return Decision::yes();
  const ElemKind mask = problem.inType(3).kind();
  if (mask != ElemKind::Bool && mask != ElemKind::Float32)
    return Decision::no(fmt::format("needs a mask of bool or f32, has {}", elemName(mask)));
  return Decision::yes();
}

uint32_t bitsOf(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

AttentionRows rowsOf(const Shape& shape) {
  return {.batch = shape[1] * shape[2] * shape[3], .head = shape[2] * shape[3], .row = shape[3]};
}

void setMask(AttentionDesc& d, const Problem& problem) {
  if (!problem.has(3)) return;
  const Type& mask = problem.inType(3);
  const std::vector<int64_t> strides = broadcastStrides(mask.shape(), Shape{d.batch, d.heads, d.queries, d.keys});
  d.mask = mask.kind() == ElemKind::Bool ? kBoolMask : kFloatMask;
  d.maskNumber = static_cast<int64_t>(problem.out.size()) + 3;
  d.maskBatch = strides[0];
  d.maskHead = strides[1];
  d.maskQuery = strides[2];
  d.maskKey = strides[3];
}

// What all kernels need: shapes, the mask and the window.
AttentionDesc describe(const Problem& problem) {
  const Shape &q = problem.inType(0).shape(), &k = problem.inType(1).shape(), &v = problem.inType(2).shape();
  AttentionDesc d{};
  d.batch = q[0];
  d.heads = q[1];
  d.groups = k[1];
  d.queries = q[2];
  d.keys = k[2];
  d.width = q[3];
  d.valueWidth = v[3];
  d.q = rowsOf(q);
  d.k = rowsOf(k);
  d.v = rowsOf(v);
  d.y = rowsOf(problem.outType().shape());
  setMask(d, problem);
  d.left = problem.attrs.integer("left");
  d.right = problem.attrs.integer("right");
  d.offset = problem.attrs.integer("offset");
  d.windowed = d.left >= 0 || d.right >= 0 ? 1 : 0;
  d.scale = bitsOf(problem.attrs.real("scale"));
  d.scratch = static_cast<int64_t>(problem.out.size() + problem.in.size());
  return d;
}

// Cuts the queries evenly and gives the rows of a block: two vectors a query, two of the panel and one operand must fit
// into the registers.
int64_t cutQueries(AttentionDesc& d, const Machine& machine) {
  const int64_t highest = machine.lanes == 16 ? 14 : 6;
  d.blocks = ceilDiv(d.queries, highest);
  const int64_t rows = ceilDiv(d.queries, d.blocks);
  d.tall = d.queries - d.blocks * (rows - 1);
  return rows;
}

// Keys and values are packed, then the queries follow.
template <class Desc>
KernelPlan planOf(const Desc& desc, const AttentionDesc& d, std::string_view name, int64_t rows, int64_t lanes) {
  KernelPlan plan;
  plan.steps = {{.kernel = fmt::format("pack_{}_w{}", name, lanes),
                 .descriptor = descriptorBytes(desc),
                 .units = d.batch * d.groups},
                {.kernel = fmt::format("{}_r{}_w{}", name, rows, lanes),
                 .descriptor = descriptorBytes(desc),
                 .units = d.batch * d.heads * d.blocks}};
  plan.scratchBytes = d.batch * d.groups * d.headFloats * static_cast<int64_t>(sizeof(float));
  plan.flops = 2. * static_cast<double>(d.batch * d.heads * d.queries) * static_cast<double>(d.keys) *
               static_cast<double>(d.width + d.valueWidth);
  return plan;
}

KernelPlan planWhole(const Problem& problem, const Machine& machine) {
  AttentionDesc d = describe(problem);
  const int64_t panel = 2 * machine.lanes, rows = cutQueries(d, machine);
  d.valueOffset = ceilDiv(d.keys, panel) * panel * d.width;
  d.headFloats = d.valueOffset + ceilDiv(d.valueWidth, panel) * panel * d.keys;
  return planOf(d, d, "attention", rows, machine.lanes);
}

Decision overBytes(const Problem& problem, const Machine&) {
  if (Decision no = needsElements({&problem.outType(), &problem.inType(0), &problem.inType(1)}); !no) return no;
  const int64_t widest = std::max(problem.inType(0).dim(3), problem.inType(2).dim(3));
  if (widest > kByteAttentionWidth)
    return Decision::no(fmt::format("needs heads of at most {} elements, has {}", kByteAttentionWidth, widest));
  return Decision::yes();
}

KernelPlan planBytes(const Problem& problem, const Machine& machine) {
  constexpr int64_t kShift = 128, kTogether = 4;
  AttentionDesc d = describe(problem);
  const int64_t panel = 2 * machine.lanes, rows = cutQueries(d, machine);
  d.valueOffset = ceilDiv(d.keys, panel) * panel * (ceilDiv(d.width, kTogether) + 1);
  d.headFloats = d.valueOffset + ceilDiv(d.valueWidth, panel) * panel * (ceilDiv(d.keys, kTogether) + 1);
  const auto isUnsignedOperand = [&](int i) { return problem.inType(i).kind() == ElemKind::UInt8; };
  const auto signedOffset = [&](int i, std::string_view name) {
    return problem.attrs.integer(name) - (isUnsignedOperand(i) ? kShift : 0);
  };
  const ByteAttentionDesc desc{.whole = d,
                               .qFlip = isUnsignedOperand(0) ? 0 : kFlipBytes,
                               .kFlip = isUnsignedOperand(1) ? kFlipBytes : 0,
                               .vFlip = isUnsignedOperand(2) ? kFlipBytes : 0,
                               .qOffset = signedOffset(0, "q_offset") + kShift,
                               .kOffset = signedOffset(1, "k_offset"),
                               .vOffset = signedOffset(2, "v_offset"),
                               .vScale = bitsOf(problem.attrs.real("v_scale")),
                               .unused = 0};
  KernelPlan plan = planOf(desc, d, "byte_attention", rows, machine.lanes);
  plan.steps.back().functions = {{.kind = FunctionParam::Kind::Epilogue}, {.kind = FunctionParam::Kind::Dot}};
  const int64_t dims[4] = {d.batch, d.heads, d.queries, d.valueWidth};
  std::copy_n(dims, 4, plan.epilogueDims);
  return plan;
}

constexpr KernelRow kRows[] = {{Op::Attention, "whole", whole, planWhole},
                               {Op::ByteAttention, "whole", overBytes, planBytes}};

}  // namespace

std::span<const KernelRow> attentionRows() { return kRows; }

}  // namespace aglow::cpu
