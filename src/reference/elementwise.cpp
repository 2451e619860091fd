// Elementwise operators: the record's formula, evaluated term by term over short arrays of consecutive elements.
#include "reference/reference.h"

#include <algorithm>
#include <cmath>

#include "reference/arithmetic.h"
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

template <class D>
D fromReal(double value) {
  if constexpr (kReal<D>) {
    return value;
  } else {
    D result = 0;
    widen(ElemKind::Float64, reinterpret_cast<const std::byte*>(&value), 0, 1, 1, &result);
    return result;
  }
}

// Literals of a formula: negative ones wrap in the unsigned domain.
template <class D>
D literal(double value) {
  return value < 0 ? static_cast<D>(fromReal<std::conditional_t<kReal<D>, double, int64_t>>(value))
                   : fromReal<D>(value);
}

double attributeValue(const Attrs& attrs, std::string_view name) {
  const int index = attrs.indexOf(name);
  AGLOW_CHECK(index >= 0, "a formula names the attribute '" + std::string(name) + "', which its record lacks");
  const AttrValue& value = attrs.at(index);
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

// Bits of reals are those of their integers.
template <class D, class F>
D onBits(D a, D b, F f) {
  if constexpr (kReal<D>)
    return static_cast<double>(f(fromReal<int64_t>(a), fromReal<int64_t>(b)));
  else
    return f(a, b);
}

template <class I>
I shiftedLeft(I a, I b, int width) {
  const auto by = static_cast<uint64_t>(b);
  return by >= static_cast<uint64_t>(width) ? I{0} : static_cast<I>(static_cast<uint64_t>(a) << by);
}

template <class I>
I shiftedRight(I a, I b, int width) {
  const auto by = static_cast<uint64_t>(b);
  return by >= static_cast<uint64_t>(width) ? I{0} : static_cast<I>(a >> by);
}

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
    const auto unary = [&](auto f) {
      const D* a = at(term.a);
      for (int64_t i = 0; i < count; ++i) out[i] = f(a[i]);
    };
    const auto binary = [&](auto f) {
      const D* a = at(term.a);
      const D* b = at(term.b);
      for (int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
    };
    const auto real = [&](double (*f)(double)) { unary([f](D a) { return fromReal<D>(f(static_cast<double>(a))); }); };
    const auto bits = [&](auto f) { binary([f](D a, D b) { return onBits(a, b, f); }); };
    const int width = width_;

    switch (term.op) {
      case Scalar::Arg:
        return operands_[term.a].read(first, count, out);
      case Scalar::Attr:
      case Scalar::Const:
        return;
      case Scalar::Add:
        return binary([](D a, D b) { return sum(a, b); });
      case Scalar::Sub:
        return binary([](D a, D b) { return difference(a, b); });
      case Scalar::Mul:
        return binary([](D a, D b) { return product(a, b); });
      case Scalar::Div:
        return binary([](D a, D b) { return quotient(a, b); });
      case Scalar::Rem:
        return binary([](D a, D b) { return remainder(a, b); });
      case Scalar::Pow:
        return binary([](D a, D b) { return power(a, b); });
      case Scalar::Min:
        return binary([](D a, D b) { return smaller(a, b); });
      case Scalar::Max:
        return binary([](D a, D b) { return larger(a, b); });
      case Scalar::Neg:
        return unary([](D a) {
          if constexpr (kReal<D>)
            return -a;
          else
            return difference(D{0}, a);
        });
      case Scalar::Abs:
        return unary([](D a) {
          if constexpr (kReal<D>)
            return std::fabs(a);
          else
            return a < D{0} ? difference(D{0}, a) : a;
        });
      case Scalar::Floor:
        if constexpr (kReal<D>) return real(std::floor);
        return unary([](D a) { return a; });
      case Scalar::Round:
        if constexpr (kReal<D>) return real(roundHalfEven);
        return unary([](D a) { return a; });
      case Scalar::Sqrt:
        return real(std::sqrt);
      case Scalar::Exp:
        return real(std::exp);
      case Scalar::Expm1:
        return real(std::expm1);
      case Scalar::Log:
        return real(std::log);
      case Scalar::Log1p:
        return real(std::log1p);
      case Scalar::Sin:
        return real(std::sin);
      case Scalar::Cos:
        return real(std::cos);
      case Scalar::Atan:
        return real(std::atan);
      case Scalar::Tanh:
        return real(std::tanh);
      case Scalar::Erf:
        return real(std::erf);
      case Scalar::And:
        return bits([](auto a, auto b) { return a & b; });
      case Scalar::Or:
        return bits([](auto a, auto b) { return a | b; });
      case Scalar::Xor:
        return bits([](auto a, auto b) { return a ^ b; });
      case Scalar::Not:
        return unary([](D a) { return onBits(a, D{0}, [](auto x, auto) { return ~x; }); });
      case Scalar::Shl:
        return bits([width](auto a, auto b) { return shiftedLeft(a, b, width); });
      case Scalar::Shr:
        return bits([width](auto a, auto b) { return shiftedRight(a, b, width); });
      case Scalar::Eq:
        return binary([](D a, D b) { return static_cast<D>(a == b); });
      case Scalar::Lt:
        return binary([](D a, D b) { return static_cast<D>(a < b); });
      case Scalar::IsNan:
        return unary([](D a) { return static_cast<D>(isNan(a)); });
      case Scalar::Select: {
        const D* condition = at(term.a);
        const D* yes = at(term.b);
        const D* no = at(term.c);
        for (int64_t i = 0; i < count; ++i) out[i] = condition[i] != D{0} ? yes[i] : no[i];
        return;
      }
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
