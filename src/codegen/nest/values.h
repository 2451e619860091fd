// The values of a nest that is being built: expressions with their kinds, equal ones once in a block.
#pragma once

#include <functional>
#include <span>

#include "codegen/nest/nest.h"

namespace aglow::nest {

class Values {
public:
  explicit Values(Nest& nest) : nest_(nest) {}

  // What the values from here on stand in. Values of the block before are out of sight, but for those of rows.
  void open(Block& block);
  void close(Block& block) const { block.end = static_cast<int>(nest_.values.size()); }

  int add(const Expr& value);
  int load(int access);
  // Literals of formulas: in integers, negative ones wrap, and what no integer can hold saturates.
  int number(ElemKind kind, double value);
  // As many conversions as it takes.
  int convert(int value, ElemKind to, bool saturate = false, ScaleRounding rounding = ScaleRounding::Nearest);
  // A primitive of formulas, computed in `kind`; operands may be of any computed kind.
  int apply(Scalar op, ElemKind kind, int a, int b = -1, int c = -1);

  // The result of a data-parallel instruction. `operand` gives the value of an input, `perAxis` a table with one number
  // for each index of a quantization axis.
  using PerAxis = std::function<int(ElemKind kind, std::vector<double> numbers, int axis)>;
  int instruction(const Program& program, const Instr& instr, const std::function<int(int)>& operand,
                  const PerAxis& perAxis);

private:
  ElemKind kind(int value) const { return nest_.value(value).kind; }
  int formula(const Attrs& attrs, ElemKind kind, std::span<const int> operands);
  int splat(ElemKind kind, double value);
  int roundedToOdd(int value);
  int lookup(int value, std::span<const int64_t> table, ElemKind to);
  int quantize(int value, ElemKind to, int scale, int offset, ElemKind quotients, ElemKind exact);

  Nest& nest_;
  int begin_ = 0;  // of the open block
};

}  // namespace aglow::nest
