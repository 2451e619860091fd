// What printers need to know of the primitives of formulas besides their meaning, as one table.
#pragma once

#include <optional>
#include <string_view>

#include "ops/formula.h"

namespace aglow::nest {

struct ScalarInfo {
  Scalar scalar;
  std::string_view name;
  int operands;
  bool reals;  // on f32 and f64 alone
  // How C and its relatives write it: a sign, or a function of <math.h>. Empty: neither means the same.
  std::string_view cOfReals = {}, cOfIntegers = {};
};

const ScalarInfo& scalarInfo(Scalar scalar);

}  // namespace aglow::nest
