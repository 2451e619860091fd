// Scalar expressions that simplify themselves as they are made: what derivatives of formulas are written in.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "ops/formula.h"

namespace aglow::grad {

// Equal expressions are one number. The constructors know the identities that derivatives of formulas need; none of
// them turns a finite value into NaN.
class Expressions {
public:
  struct Item {
    Scalar op = Scalar::Const;
    int a = -1, b = -1, c = -1;  // earlier items; of Arg, a is the operand's number
    double value = 0;            // of Const
  };

  const Item& operator[](int i) const { return items_[static_cast<size_t>(i)]; }

  int arg(int number) { return item({.op = Scalar::Arg, .a = number}); }
  int number(double value) { return item({.op = Scalar::Const, .value = value}); }
  int add(int a, int b);
  int sub(int a, int b);
  int mul(int a, int b);
  int div(int a, int b);
  int neg(int a);
  int select(int condition, int a, int b);
  int less(int a, int b) { return item({.op = Scalar::Lt, .a = a, .b = b}); }
  int equal(int a, int b) { return item({.op = Scalar::Eq, .a = a, .b = b}); }
  // Any primitive; operands that it does not take are ignored.
  int apply(Scalar op, int a, int b = -1, int c = -1);

  bool isNumber(int i) const { return (*this)[i].op == Scalar::Const; }
  bool isNumber(int i, double value) const { return isNumber(i) && (*this)[i].value == value; }

  // The derivative of `root` by operand `by`. Where pieces of a function meet it is the mean of both sides, so that it
  // is exact where they meet smoothly (softplus is max(x, 0) and a part with |x|); but a function that is itself held
  // by a constant, as Relu is, has the slope of the constant there, and a root by itself is flat at 0.
  int derivative(int root, int by);

private:
  int item(const Item& item);
  bool is(int i, Scalar op) const { return (*this)[i].op == op; }
  // The share of a sum with a number, c / (c + w), if that is what w and the sum are.
  int shareOfSum(int w, int sum);
  int scaledSelect(int factor, int select);
  int derived(int i, int by, int root, std::map<int, int>& known);
  int derivedExtremum(const Item& f, int da, int db, bool held);

  std::vector<Item> items_;
  std::map<std::tuple<Scalar, int, int, int, uint64_t>, int> numbers_;
};

}  // namespace aglow::grad
