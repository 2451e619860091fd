// Elementwise operators: the record's formula, evaluated term by term over short arrays of consecutive elements.
#include "reference/reference.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic.h"
#include "reference/scalars.h"
#include "reference/strided.h"

namespace aglow::reference {

namespace {

constexpr int64_t kChunk = 256;

// An operand stretched to the result's shape, read in the order of the result's elements.
class StretchedOperand {
public:
  StretchedOperand(const TensorRef& operand, const Shape& result)
      : kind_(operand.type->kind()),
        data_(operand.data),
        axes_(joinedAxes(result.dims(), broadcastStrides(operand.type->shape(), result), result.strides())) {}

  template <class D>
  void read(int64_t first, int64_t count, D* out) const {
    const StridedAxis run = axes_.back();
    while (count > 0) {
      const int64_t inRun = first % run.extent;
      const int64_t length = std::min(count, run.extent - inRun);
      const int64_t offset = rowOffset(first / run.extent) + inRun * run.from;
      if (run.from == 0) {
        widen(kind_, data_, offset, 1, 1, out);
        std::fill(out + 1, out + length, *out);
      } else {
        widen(kind_, data_, offset, length, run.from, out);
      }
      first += length;
      count -= length;
      out += length;
    }
  }

private:
  int64_t rowOffset(int64_t row) const {
    int64_t offset = 0;
    for (size_t a = axes_.size() - 1; a > 0; --a) {
      offset += row % axes_[a - 1].extent * axes_[a - 1].from;
      row /= axes_[a - 1].extent;
    }
    return offset;
  }

  ElemKind kind_;
  const std::byte* data_;
  std::vector<StridedAxis> axes_;
};

// The formula's terms as arrays of kChunk values each. Literals and attributes are filled in once.
template <class D>
class Evaluation {
public:
  Evaluation(const KernelCall& call, int width)
      : formula_(call.attrs.op().scalar), width_(width), values_(static_cast<size_t>(formula_.size() * kChunk)) {
    for (const TensorRef& operand : call.in) operands_.emplace_back(operand, call.outType().shape());
    for (int i = 0; i < formula_.size(); ++i) {
      const Term& term = formula_[i];
      if (term.op == Scalar::Const) std::fill_n(at(i), kChunk, literal<D>(term.value));
      if (term.op == Scalar::Attr) std::fill_n(at(i), kChunk, literal<D>(attributeValue(call.attrs, term.attr)));
    }
  }

  const D* run(int64_t first, int64_t count) {
    for (int i = 0; i < formula_.size(); ++i) evaluate(formula_[i], at(i), first, count);
    return at(formula_.size() - 1);
  }

private:
  D* at(int term) { return values_.data() + term * kChunk; }

  void evaluate(const Term& term, D* out, int64_t first, int64_t count) {
    switch (term.op) {
      case Scalar::Arg:
        return operands_[term.a].read(first, count, out);
      case Scalar::Attr:
      case Scalar::Const:
        return;
      default:
        return applyScalar(term.op, at(term.a), at(term.b), at(term.c), out, count, width_);
    }
  }

  const Formula& formula_;
  int width_;
  std::vector<StretchedOperand> operands_;
  std::vector<D> values_;
};

// Reals if any operand is real, else with a sign if any operand has one. Conditions are bool and so never decide.
Domain commonDomain(const KernelCall& call) {
  Domain domain = Domain::Unsigned;
  for (const TensorRef& operand : call.in) domain = std::min(domain, domainOf(operand.type->kind()));
  return domain;
}
static_assert(Domain::Float < Domain::Signed && Domain::Signed < Domain::Unsigned);

}  // namespace

Status elementwise(const KernelCall& call) {
  const Type& type = call.outType();
  inDomain(commonDomain(call), [&](auto zero) {
    using D = decltype(zero);
    Evaluation<D> evaluation(call, kReal<D> ? 64 : elemInfo(call.inType(0).kind()).bits);
    for (int64_t first = 0; first < type.elements(); first += kChunk) {
      const int64_t count = std::min(kChunk, type.elements() - first);
      narrow(type.kind(), evaluation.run(first, count), count, call.outData(), first);
    }
  });
  return {};
}

}  // namespace aglow::reference
