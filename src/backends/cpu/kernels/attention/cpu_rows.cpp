// Which kernels compute attention whole.
#include <fmt/format.h>

#include <bit>

#include "backends/cpu/kernels/attention/attention_desc.h"
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
  if (const ElemKind precision = attrs.elem("precision"); precision != ElemKind::Float32)
    return Decision::no(fmt::format("needs a softmax in f32, has {}", elemName(precision)));
  if (Decision no = needsElements({&problem.outType(), &problem.inType(0), &problem.inType(1)}); !no) return no;
  if (!problem.has(3)) return Decision::yes();
  const ElemKind mask = problem.inType(3).kind();
  if (mask != ElemKind::Bool && mask != ElemKind::Float32)
    return Decision::no(fmt::format("needs a mask of bool or f32, has {}", elemName(mask)));
  return Decision::yes();
}

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

KernelPlan planWhole(const Problem& problem, const Machine& machine) {
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
  d.scale = std::bit_cast<uint32_t>(static_cast<float>(problem.attrs.real("scale")));

  const int64_t panel = 2 * machine.lanes;
  d.scratch = static_cast<int64_t>(problem.out.size() + problem.in.size());
  d.valueOffset = ceilDiv(d.keys, panel) * panel * d.width;
  d.headFloats = d.valueOffset + ceilDiv(d.valueWidth, panel) * panel * d.keys;

  // Two vectors a query, two of the panel and one operand must fit into the registers.
  const int64_t highest = machine.lanes == 16 ? 14 : 6;
  d.blocks = ceilDiv(d.queries, highest);
  const int64_t rows = ceilDiv(d.queries, d.blocks);
  d.tall = d.queries - d.blocks * (rows - 1);

  KernelPlan plan;
  plan.steps = {{.kernel = fmt::format("pack_attention_w{}", machine.lanes),
                 .descriptor = descriptorBytes(d),
                 .units = d.batch * d.groups},
                {.kernel = fmt::format("attention_r{}_w{}", rows, machine.lanes),
                 .descriptor = descriptorBytes(d),
                 .units = d.batch * d.heads * d.blocks}};
  plan.scratchBytes = d.batch * d.groups * d.headFloats * static_cast<int64_t>(sizeof(float));
  plan.flops = 2. * static_cast<double>(d.batch * d.heads * d.queries) * static_cast<double>(d.keys) *
               static_cast<double>(d.width + d.valueWidth);
  return plan;
}

constexpr KernelRow kRows[] = {{Op::Attention, "whole", whole, planWhole}};

}  // namespace

std::span<const KernelRow> attentionRows() { return kRows; }

}  // namespace aglow::cpu
