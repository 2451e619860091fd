// The scalar formula of an elementwise operator, written once in its record: the interpreter evaluates it, and code
// generators print it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace aglow {

// The primitives a backend must know. Everything else is composed of them in formulas.
enum class Scalar : uint8_t {
  Arg,    // operand number a
  Attr,   // attribute by name
  Const,  // value
  Add,    // integers wrap
  Sub,
  Mul,
  Div,  // integers truncate towards zero; a divisor of zero gives zero
  Rem,  // sign of the dividend, as C's fmod and %; a divisor of zero gives zero for integers
  Pow,
  Min,  // NaN wins
  Max,  // NaN wins
  Neg,
  Abs,
  Floor,
  Round,  // half to even
  Sqrt,
  Exp,
  Expm1,
  Log,
  Log1p,
  Sin,
  Cos,
  Atan,
  Tanh,
  Erf,
  And,  // bitwise; on bool values this is the logical operator
  Or,
  Xor,
  Not,  // bitwise complement
  Shl,  // a shift by the width or more gives zero
  Shr,
  Eq,  // 1 or 0, as are Lt and IsNan
  Lt,
  IsNan,
  Select,  // a ? b : c
};
inline constexpr int kScalars = static_cast<int>(Scalar::Select) + 1;

struct Term {
  Scalar op = Scalar::Const;
  uint8_t a = 0, b = 0, c = 0;  // earlier terms (Arg: a is the operand's number)
  double value = 0;             // Const
  std::string_view attr = {};   // Attr

  constexpr bool operator==(const Term&) const = default;
};

// Terms in order of evaluation; the last one is the result. Equal terms are kept once.
class Formula {
public:
  static constexpr int kMaxTerms = 40;

  constexpr Formula() = default;
  constexpr Formula(double value) { push({.op = Scalar::Const, .value = value}); }  // NOLINT: literals are formulas
  static constexpr Formula arg(uint8_t number) { return leaf({.op = Scalar::Arg, .a = number}); }
  static constexpr Formula attribute(std::string_view name) { return leaf({.op = Scalar::Attr, .attr = name}); }

  static constexpr Formula apply(Scalar op, const Formula& a) {
    Formula r;
    const uint8_t ia = r.append(a);
    r.finish({.op = op, .a = ia});
    return r;
  }
  static constexpr Formula apply(Scalar op, const Formula& a, const Formula& b) {
    Formula r;
    const uint8_t ia = r.append(a), ib = r.append(b);
    r.finish({.op = op, .a = ia, .b = ib});
    return r;
  }
  static constexpr Formula apply(Scalar op, const Formula& a, const Formula& b, const Formula& c) {
    Formula r;
    const uint8_t ia = r.append(a), ib = r.append(b), ic = r.append(c);
    r.finish({.op = op, .a = ia, .b = ib, .c = ic});
    return r;
  }

  constexpr bool empty() const { return size_ == 0; }
  constexpr int size() const { return size_; }
  constexpr const Term& operator[](int i) const { return terms_[static_cast<size_t>(i)]; }
  constexpr const Term* begin() const { return terms_.data(); }
  constexpr const Term* end() const { return terms_.data() + size_; }

private:
  static constexpr Formula leaf(Term term) {
    Formula f;
    f.push(term);
    return f;
  }
  constexpr uint8_t push(Term term) {
    for (int i = 0; i < size_; ++i)
      if (terms_[static_cast<size_t>(i)] == term) return static_cast<uint8_t>(i);
    if (size_ == kMaxTerms) throw "a formula holds too many terms: raise Formula::kMaxTerms";
    terms_[static_cast<size_t>(size_)] = term;
    return static_cast<uint8_t>(size_++);
  }
  // The result stands last: it cannot be one of its own operands.
  constexpr void finish(Term term) {
    if (push(term) + 1 != size_) throw "the result of a formula repeats one of its terms";
  }
  constexpr uint8_t append(const Formula& other) {
    std::array<uint8_t, kMaxTerms> map{};
    for (int i = 0; i < other.size_; ++i) {
      Term term = other.terms_[static_cast<size_t>(i)];
      if (term.op > Scalar::Const) {
        term.a = map[term.a];
        term.b = map[term.b];
        term.c = map[term.c];
      }
      map[static_cast<size_t>(i)] = push(term);
    }
    return map[static_cast<size_t>(other.size_ - 1)];
  }

  std::array<Term, kMaxTerms> terms_{};
  int size_ = 0;
};

// The words in which records write formulas.
namespace formula {

inline constexpr Formula x = Formula::arg(0), y = Formula::arg(1), z = Formula::arg(2);
constexpr Formula attr(std::string_view name) { return Formula::attribute(name); }

constexpr Formula operator+(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Add, a, b); }
constexpr Formula operator-(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Sub, a, b); }
constexpr Formula operator*(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Mul, a, b); }
constexpr Formula operator/(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Div, a, b); }
constexpr Formula operator-(const Formula& a) { return Formula::apply(Scalar::Neg, a); }
constexpr Formula operator&(const Formula& a, const Formula& b) { return Formula::apply(Scalar::And, a, b); }
constexpr Formula operator|(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Or, a, b); }
constexpr Formula operator^(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Xor, a, b); }
constexpr Formula operator~(const Formula& a) { return Formula::apply(Scalar::Not, a); }
constexpr Formula operator<<(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Shl, a, b); }
constexpr Formula operator>>(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Shr, a, b); }
constexpr Formula operator==(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Eq, a, b); }
constexpr Formula operator<(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Lt, a, b); }
constexpr Formula operator<=(const Formula& a, const Formula& b) { return (a < b) | (a == b); }

constexpr Formula rem(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Rem, a, b); }
constexpr Formula pow(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Pow, a, b); }
constexpr Formula min(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Min, a, b); }
constexpr Formula max(const Formula& a, const Formula& b) { return Formula::apply(Scalar::Max, a, b); }
constexpr Formula abs(const Formula& a) { return Formula::apply(Scalar::Abs, a); }
constexpr Formula floor(const Formula& a) { return Formula::apply(Scalar::Floor, a); }
constexpr Formula round(const Formula& a) { return Formula::apply(Scalar::Round, a); }
constexpr Formula sqrt(const Formula& a) { return Formula::apply(Scalar::Sqrt, a); }
constexpr Formula exp(const Formula& a) { return Formula::apply(Scalar::Exp, a); }
constexpr Formula expm1(const Formula& a) { return Formula::apply(Scalar::Expm1, a); }
constexpr Formula log(const Formula& a) { return Formula::apply(Scalar::Log, a); }
constexpr Formula log1p(const Formula& a) { return Formula::apply(Scalar::Log1p, a); }
constexpr Formula sin(const Formula& a) { return Formula::apply(Scalar::Sin, a); }
constexpr Formula cos(const Formula& a) { return Formula::apply(Scalar::Cos, a); }
constexpr Formula atan(const Formula& a) { return Formula::apply(Scalar::Atan, a); }
constexpr Formula tanh(const Formula& a) { return Formula::apply(Scalar::Tanh, a); }
constexpr Formula erf(const Formula& a) { return Formula::apply(Scalar::Erf, a); }
constexpr Formula isNan(const Formula& a) { return Formula::apply(Scalar::IsNan, a); }
constexpr Formula select(const Formula& condition, const Formula& a, const Formula& b) {
  return Formula::apply(Scalar::Select, condition, a, b);
}

}  // namespace formula

}  // namespace aglow
