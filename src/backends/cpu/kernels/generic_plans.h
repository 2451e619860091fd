// Plans by the general kernels: every core operator that is not elementwise, for any shape and kind of elements. One
// file a family, backends/cpu/kernels/<family>/general_plans.cpp.
#pragma once

#include <algorithm>
#include <string>

#include "backends/cpu/kernels/lines.h"
#include "backends/cpu/kernels/plan.h"
#include "backends/cpu/kernels/window.h"
#include "reference/strided.h"
#include "support/check.h"
#include "support/sizes.h"

namespace aglow::cpu::generic {

// One for each record, named after it; without it nothing links.
using Planner = KernelPlan(const Problem&, const Machine&);
#define AGLOW_ROW(name, function) Planner function;
#include "backends/kernel_table.inc"
#undef AGLOW_ROW

// The least work of a unit, which has not much more where items allow it.
inline constexpr int64_t kUnitElements = 8192;
inline constexpr int64_t kUnitProducts = 1 << 17;

inline Items dealt(int64_t count, int64_t workOfItem, int64_t workOfUnit) {
  return {count, std::max<int64_t>(1, workOfUnit / std::max<int64_t>(workOfItem, 1))};
}

// The domain that general kernels read a kind in.
inline FunctionParam::Domain domainFor(ElemKind kind) {
  if (kind == ElemKind::Float64) return FunctionParam::Domain::F64;
  return isFloat(kind) ? FunctionParam::Domain::F32 : FunctionParam::Domain::I64;
}
inline std::string domainName(FunctionParam::Domain domain) {
  return domain == FunctionParam::Domain::F32 ? "_f32" : domain == FunctionParam::Domain::F64 ? "_f64" : "_i64";
}
// What products of a kind are computed in: integers that wrap need no more bits than they have.
inline std::string productName(ElemKind kind) {
  if (isFloat(kind)) return domainName(domainFor(kind));
  return elemInfo(kind).bits <= 32 ? "_i32" : "_i64";
}
inline std::string lanesName(const Machine& machine) { return "_w" + std::to_string(machine.lanes); }

// Input 0 and result 0 as the kernels' element functions see them.
inline std::vector<FunctionParam> loadAndStore(ElemKind kind) {
  const FunctionParam::Domain domain = domainFor(kind);
  return {{FunctionParam::Kind::Load, domain, 0}, {FunctionParam::Kind::Store, domain, 0}};
}

template <class Desc>
KernelStep step(std::string kernel, const Desc& desc, const Items& items, std::vector<FunctionParam> functions = {}) {
  return {.kernel = std::move(kernel),
          .descriptor = descriptorBytes(desc),
          .units = items.units(),
          .functions = std::move(functions),
          .general = true};
}

// The window of a convolution or pool, with axes joined that it leaves as they are.
WindowDesc windowDesc(const Problem& problem, const std::vector<int64_t>& kernel);

// The lines of a tensor along an axis, in blocks of `cols`; none of its extents is zero.
LinesDesc linesDesc(const Shape& shape, int64_t axis, int64_t cols = kReduceCols);

template <int S>
void addAxis(Axes<S>& axes, const typename Axes<S>::Axis& axis) {
  AGLOW_CHECK(axes.rank < kMaxAxes, "more axes than a shape has");
  axes.axis[axes.rank++] = axis;
}

}  // namespace aglow::cpu::generic
