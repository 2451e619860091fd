// Runs plans of the CPU library natively: kernels compiled into the test, element functions from tensor/convert.h.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "backends/cpu/kernels/abi.h"
#include "backends/cpu/kernels/plan.h"
#include "tensor/convert.h"
#include "unit/reference_harness.h"

namespace aglow::cpu {

template <class D>
using WidestOf = std::conditional_t<std::is_floating_point_v<D>, double, int64_t>;

template <class D, int K>
D loadElement(const void* base, int64_t index) {
  WidestOf<D> value;
  widen(static_cast<ElemKind>(K), static_cast<const std::byte*>(base), index, 1, 1, &value);
  return static_cast<D>(value);
}
template <class D, int K>
void storeElement(void* base, int64_t index, D value) {
  const auto wide = static_cast<WidestOf<D>>(value);
  narrow(static_cast<ElemKind>(K), &wide, 1, static_cast<std::byte*>(base), index);
}

// The element function of a kind, by its type.
template <class F>
struct ElementFunction;
template <class D>
struct ElementFunction<Load<D>> {
  static constexpr auto kKind = FunctionParam::Kind::Load;
  template <int... K>
  static Load<D>* of(ElemKind kind, std::integer_sequence<int, K...>) {
    return std::array<Load<D>*, kElemKinds>{loadElement<D, K>...}[static_cast<size_t>(kind)];
  }
};
template <class D>
struct ElementFunction<Store<D>> {
  static constexpr auto kKind = FunctionParam::Kind::Store;
  template <int... K>
  static Store<D>* of(ElemKind kind, std::integer_sequence<int, K...>) {
    return std::array<Store<D>*, kElemKinds>{storeElement<D, K>...}[static_cast<size_t>(kind)];
  }
};

using NativeKernel = std::function<int32_t(const KernelStep&, const Problem&, void* const*, int64_t, int64_t)>;

template <class Desc, class... F>
NativeKernel native(int32_t (*kernel)(const Desc*, void* const*, int64_t, int64_t, F*...)) {
  return [kernel](const KernelStep& step, const Problem& problem, void* const* p, int64_t begin, int64_t end) {
    AGLOW_CHECK(step.descriptor.size() == sizeof(Desc) && step.functions.size() == sizeof...(F), step.kernel);
    [[maybe_unused]] const auto function = [&]<class G>(size_t i, G*) {
      const FunctionParam& param = step.functions[i];
      AGLOW_CHECK(param.kind == ElementFunction<G>::kKind, step.kernel);
      const bool loads = param.kind == FunctionParam::Kind::Load;
      const Type& type = loads ? problem.inType(param.operand) : problem.outType(param.operand);
      return ElementFunction<G>::of(type.kind(), std::make_integer_sequence<int, kElemKinds>{});
    };
    const auto* desc = reinterpret_cast<const Desc*>(step.descriptor.data());
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return kernel(desc, p, begin, end, function(I, static_cast<F*>(nullptr))...);
    }(std::index_sequence_for<F...>{});
  };
}

using NativeKernels = std::map<std::string, NativeKernel>;

// What a plan makes of the operands, its units done in pieces of `piece`, the last first. Results and scratch memory
// hold garbage before.
struct NativeRun {
  int32_t status = kDone;
  std::vector<Tensor> out;
};
inline NativeRun runPlan(const NativeKernels& kernels, const KernelPlan& plan, const Problem& problem,
                         const std::vector<Tensor>& in, int64_t piece, bool inPlace = false) {
  NativeRun run;
  std::vector<void*> p;
  for (const Type* type : problem.out) {
    run.out.emplace_back(*type);
    std::byte* data = run.out.back().mutableData();
    std::memset(data, 0xA5, static_cast<size_t>(type->bytes()));
    p.push_back(data);
  }
  if (inPlace) std::memcpy(p[0], in[0].data(), static_cast<size_t>(in[0].bytes()));
  for (const Tensor& tensor : in) p.push_back(tensor.empty() ? nullptr : tensor.ref().data);
  if (inPlace) p[problem.out.size()] = p[0];
  std::vector<std::byte> scratch(static_cast<size_t>(plan.scratchBytes), std::byte{0xA5});
  p.push_back(scratch.data());
  for (const KernelStep& step : plan.steps) {
    const NativeKernel& kernel = kernels.at(step.kernel);
    std::vector<void*> given;
    for (const KernelAddress& address : step.addresses)
      given.push_back(static_cast<std::byte*>(p[static_cast<size_t>(address.operand)]) + address.offset);
    if (given.empty()) given = p;
    for (int64_t end = step.units; end > 0; end -= piece)
      run.status |= kernel(step, problem, given.data(), std::max<int64_t>(end - piece, 0), end);
    if (run.status != kDone) return run;
  }
  return run;
}

}  // namespace aglow::cpu
