// Runs plans of CPU kernels that are compiled into the test, with an epilogue that stores and counts.
#pragma once

#pragma clang diagnostic ignored "-Wpsabi"  // vectors are passed between functions of the same test only

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/cpu/kernels/abi.h"
#include "backends/cpu/kernels/plan.h"
#include "support/rng.h"
#include "support/sizes.h"
#include "unit/reference_harness.h"

// Rows of a function that finds kernels by name: one kernel, all widths of one, all heights of the register tiles.
#define KERNEL(NAME) \
  if (name == #NAME) return reinterpret_cast<AnyKernel>(aglow_##NAME);
#define WIDTHS(NAME) KERNEL(NAME##_w4) KERNEL(NAME##_w8) KERNEL(NAME##_w16)
#define TILE_WIDTHS(NAME) \
  WIDTHS(NAME##_r1)       \
  WIDTHS(NAME##_r2)       \
  WIDTHS(NAME##_r3)       \
  WIDTHS(NAME##_r4)       \
  WIDTHS(NAME##_r5)       \
  WIDTHS(NAME##_r6)       \
  WIDTHS(NAME##_r7)       \
  WIDTHS(NAME##_r8)       \
  WIDTHS(NAME##_r9)       \
  WIDTHS(NAME##_r10) WIDTHS(NAME##_r11) WIDTHS(NAME##_r12) WIDTHS(NAME##_r13) WIDTHS(NAME##_r14)
#define BLOCK_TILES(NAME) \
  KERNEL(NAME##_r2_w4)    \
  KERNEL(NAME##_r3_w4)    \
  KERNEL(NAME##_r4_w4)    \
  KERNEL(NAME##_r5_w4)    \
  KERNEL(NAME##_r6_w4)    \
  KERNEL(NAME##_r7_w4)    \
  KERNEL(NAME##_r8_w4) KERNEL(NAME##_r9_w4) KERNEL(NAME##_r10_w4) KERNEL(NAME##_r11_w4) KERNEL(NAME##_r12_w4)

namespace aglow::cpu {

// Kernels that need no epilogue, or no products of bytes, do not see the last parameters.
template <int W, class T>
using TestKernel = int32_t(const void*, void* const*, int64_t, int64_t, Epilogue<W, T>*, Dot<W>*);
using AnyKernel = void (*)();
using KernelLookup = std::function<AnyKernel(const std::string&)>;

// What the epilogue finds after the operands and the scratch memory, as the last address.
struct StoreTarget {
  void* to;
  int64_t dims[4];
  std::vector<int> written;
};

inline constexpr int kTargetSlot = 7;

template <int W, class T>
void storeAndCount(Lanes<T, W> value, void* const* p, int64_t c0, int64_t c1, int64_t c2, int64_t c3, int64_t count) {
  auto& target = *static_cast<StoreTarget*>(p[kTargetSlot]);
  const int64_t* dims = target.dims;
  ASSERT_TRUE(c0 >= 0 && c0 < dims[0] && c1 >= 0 && c1 < dims[1] && c2 >= 0 && c2 < dims[2] && c3 >= 0 && count >= 1 &&
              count <= W && c3 + count <= dims[3]);
  const int64_t at = ((c0 * dims[1] + c1) * dims[2] + c2) * dims[3] + c3;
  for (int64_t i = 0; i < count; ++i) {
    static_cast<T*>(target.to)[at + i] = value[i];
    ++target.written[static_cast<size_t>(at + i)];
  }
}

// Each product of bytes by itself.
template <int W>
Lanes<int32_t, W> plainDot(Lanes<int32_t, W> sum, Lanes<int32_t, W> bytes, Lanes<int32_t, W> weights) {
  constexpr int kByte = 8;
  for (int lane = 0; lane < W; ++lane)
    for (int place = 0; place < 4; ++place)
      sum[lane] +=
          static_cast<uint8_t>(bytes[lane] >> (place * kByte)) * static_cast<int8_t>(weights[lane] >> (place * kByte));
  return sum;
}

// Lane 2 r + c is row r by column c, of eight bytes each.
inline Lanes<int32_t, 4> plainBlockDot(Lanes<int32_t, 4> sum, Lanes<int32_t, 4> rows, Lanes<int32_t, 4> columns) {
  constexpr int kByte = 8;
  for (int lane = 0; lane < 4; ++lane)
    for (int byte = 0; byte < 2 * 4; ++byte) {
      const int word = byte / 4, shift = byte % 4 * kByte;
      sum[lane] += static_cast<uint8_t>(rows[lane / 2 * 2 + word] >> shift) *
                   static_cast<int8_t>(columns[lane % 2 * 2 + word] >> shift);
    }
  return sum;
}

// Each kernel has a descriptor of its own type, of which the table knows the bytes alone; calls through pointers do not
// tell.
template <int W, class T>
__attribute__((no_sanitize("function"))) int32_t callKernel(TestKernel<W, T>* kernel, const KernelStep& step,
                                                            void* const* p, int64_t begin, int64_t end) {
  Dot<W>* dot = plainDot<W>;
  if constexpr (W == 4)
    if (step.kernel.starts_with("byte_blocks")) dot = plainBlockDot;
  return kernel(step.descriptor.data(), p, begin, end, storeAndCount<W, T>, dot);
}

// The first result, computed unit by unit in an order that depends on `order`; checks that every element that the
// epilogue sees is stored exactly once. Kernels without one store their results themselves.
template <int W, class T = float>
std::vector<T> runPlan(const KernelPlan& plan, const KernelLookup& lookup, const std::vector<const void*>& inputs,
                       int order, int64_t elements = 0) {
  const int64_t* dims = plan.epilogueDims;
  if (dims[0] != 0) elements = dims[0] * dims[1] * dims[2] * dims[3];
  std::vector<T> result(static_cast<size_t>(elements), T{77});
  std::vector<float> scratch(static_cast<size_t>(plan.scratchBytes) / sizeof(float), -1e30F);
  StoreTarget target{
      result.data(), {dims[0], dims[1], dims[2], dims[3]}, std::vector<int>(dims[0] == 0 ? 0 : result.size(), 0)};
  void* p[kTargetSlot + 1] = {};
  size_t slot = 0;
  p[slot++] = result.data();
  for (const void* input : inputs) p[slot++] = const_cast<void*>(input);
  p[slot] = scratch.data();
  p[kTargetSlot] = &target;
  for (const KernelStep& step : plan.steps) {
    const auto kernel = reinterpret_cast<TestKernel<W, T>*>(lookup(step.kernel));
    EXPECT_NE(kernel, nullptr) << step.kernel;
    if (kernel == nullptr) return result;
    const auto run = [&](int64_t begin, int64_t end) {
      EXPECT_EQ((callKernel<W, T>(kernel, step, p, begin, end)), kDone);
    };
    if (order == 0) run(0, step.rounds * step.units);
    for (int64_t round = 0; order != 0 && round < step.rounds; ++round) {
      const int64_t first = round * step.units;
      for (int64_t end = step.units; end > 0; end -= std::min<int64_t>(end, order))
        run(first + end - std::min<int64_t>(end, order), first + end);
    }
  }
  EXPECT_TRUE(std::all_of(target.written.begin(), target.written.end(), [](int n) { return n == 1; }));
  return result;
}

template <class T>
struct PartResult {
  std::vector<T> values;
  std::vector<int> written;
};

// All steps of one of `parts` parts of a plan's units.
template <int W, class T>
PartResult<T> runPart(const KernelPlan& plan, const KernelLookup& lookup, const std::vector<const void*>& inputs,
                      int64_t part, int64_t parts) {
  const int64_t* dims = plan.epilogueDims;
  PartResult<T> result;
  result.values.assign(static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]), T{77});
  std::vector<float> scratch(static_cast<size_t>(plan.scratchBytes) / sizeof(float), __builtin_nanf(""));
  StoreTarget target{
      result.values.data(), {dims[0], dims[1], dims[2], dims[3]}, std::vector<int>(result.values.size())};
  void* p[kTargetSlot + 1] = {};
  size_t slot = 0;
  p[slot++] = result.values.data();
  for (const void* input : inputs) p[slot++] = const_cast<void*>(input);
  p[slot] = scratch.data();
  p[kTargetSlot] = &target;
  for (const KernelStep& step : plan.steps) {
    EXPECT_EQ(step.units % parts, 0) << step.kernel;
    const auto kernel = reinterpret_cast<TestKernel<W, T>*>(lookup(step.kernel));
    const int64_t units = step.units / parts;
    EXPECT_EQ((callKernel<W, T>(kernel, step, p, units * part, units * (part + 1))), kDone);
  }
  result.written = std::move(target.written);
  return result;
}

inline Tensor randomTensor(Rng& rng, Shape shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = rng.real(-1, 1);
  return f32(std::move(shape), values);
}

inline Tensor randomBytes(Rng& rng, Shape shape, ElemKind kind = ElemKind::UInt8) {
  std::vector<int64_t> values(static_cast<size_t>(shape.elements()));
  const int64_t low = isUnsigned(kind) ? 0 : kind == ElemKind::Int8 ? INT8_MIN : -127;
  for (int64_t& value : values) value = low + rng.between(0, UINT8_MAX - (kind == ElemKind::Int32 ? 1 : 0));
  return Tensor::fromInts(Type(kind, std::move(shape)), values);
}

template <class T = float>
std::vector<T> elementsOf(const Tensor& tensor) {
  const T* from = tensor.ref().as<const T>();
  return {from, from + tensor.type().elements()};
}
inline std::vector<std::byte> bytesOf(const Tensor& tensor) {
  const std::byte* from = tensor.data();
  return {from, from + tensor.type().bytes()};
}

// What a cut promises, for each part alone: it stores what lies in its part of the result and nothing else, with the
// same bits, and where an operand is cut, all that lies in other parts of it may be anything. Gives how many cuts there
// were.
template <int W, class T>
int checkCuts(const KernelRow& row, Problem problem, const Machine& machine, const KernelLookup& lookup,
              const std::vector<std::vector<std::byte>>& operands, const std::vector<T>& expected) {
  // Which part an element of [images, outer, parts, rest] belongs to.
  const auto partOf = [](size_t element, size_t elements, int64_t images, int64_t outer, int64_t parts) {
    const auto rest = static_cast<int64_t>(elements) / (images * outer * parts), at = static_cast<int64_t>(element);
    return at / (outer * parts * rest) * parts + at / rest % parts;
  };
  int count = 0;
  for (int64_t axis = 1; axis < 4; ++axis) {
    for (int64_t parts = 2; parts <= 4; ++parts) {
      problem.wish = {.axis = axis, .parts = parts};
      const KernelPlan plan = row.plan(problem, machine);
      if (!plan.cut) continue;
      ++count;
      const int64_t images = plan.epilogueDims[0];
      int64_t outer = 1;
      for (int64_t i = 1; i < axis; ++i) outer *= plan.epilogueDims[i];
      for (int64_t part = 0; part < images * parts; ++part) {
        std::vector<std::vector<std::byte>> own = operands;
        std::vector<const void*> inputs;
        for (size_t i = 0; i < own.size(); ++i) {
          const int64_t cut = plan.cut->inputs[i];
          for (size_t e = 0; cut > 0 && e < own[i].size(); ++e)
            if (partOf(e, own[i].size(), images, cut, parts) != part) own[i][e] = std::byte{0xFF};  // NaN, or 255
          inputs.push_back(own[i].data());
        }
        const PartResult<T> got = runPart<W, T>(plan, lookup, inputs, part, images * parts);
        for (size_t e = 0; e < expected.size(); ++e) {
          const bool mine = partOf(e, expected.size(), images, outer, parts) == part;
          EXPECT_EQ(got.written[e], mine ? 1 : 0) << "element " << e << " of part " << part;
          if (mine) EXPECT_EQ(std::memcmp(&got.values[e], &expected[e], sizeof(T)), 0) << "element " << e;
          if (::testing::Test::HasFailure()) return count;
        }
      }
    }
  }
  return count;
}

// Small caches let small problems have passes, groups of tiles and prefetches.
inline Machine randomMachine(Rng& rng, int lanes) {
  return {.lanes = lanes,
          .registers = rng.flip() ? 32 : 16,
          .fma = true,
          .byteBlocks = lanes == 4 && rng.flip(),
          .l2 = rng.pick<int64_t>({1 << 11, 1 << 14, 1 << 20})};
}

// Runs the first row that serves the operator, with the units in several orders and in all parts that it can be cut
// into, and compares with the reference. `cuts`, if given, counts these.
template <int W, class T = float>
void checkRow(const Attrs& attrs, const std::vector<Tensor>& in, std::span<const KernelRow> rows,
              const KernelLookup& lookup, const Machine& machine, double tolerance = 1e-4, int* cuts = nullptr) {
  std::string trace = std::string(attrs.op().name) + ", lanes " + std::to_string(W);
  for (const Tensor& tensor : in) trace += ", " + tensor.type().text();
  SCOPED_TRACE(trace);
  const Tensor want = runOne(attrs, in);
  std::vector<const Type*> types;
  std::vector<std::vector<std::byte>> operands;  // of exact size, so that sanitizers see what is read outside
  std::vector<const void*> inputs;
  for (const Tensor& tensor : in) {
    types.push_back(&tensor.type());
    operands.push_back(bytesOf(tensor));
  }
  for (const std::vector<std::byte>& operand : operands) inputs.push_back(operand.data());
  const Type* result = &want.type();
  const Problem problem{attrs, types, {&result, 1}};
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const KernelRow& r) {
    return r.op == opOf(attrs.op()) && r.applies(problem, machine);
  });
  ASSERT_NE(row, rows.end());
  const KernelPlan plan = row->plan(problem, machine);
  const int64_t elements = want.type().elements();
  const std::vector<T> got = runPlan<W, T>(plan, lookup, inputs, 0, elements), expected = elementsOf<T>(want);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const auto g = static_cast<double>(got[i]), e = static_cast<double>(expected[i]);
    if (std::isnan(e) ? std::isnan(g) : g == e || std::abs(g - e) <= tolerance) continue;
    FAIL() << "element " << i << " is " << g << " instead of " << e;
  }
  for (const int order : {1, 3}) {
    const std::vector<T> again = runPlan<W, T>(plan, lookup, inputs, order, elements);
    EXPECT_EQ(std::memcmp(again.data(), got.data(), got.size() * sizeof(T)), 0) << "units in another order";
  }
  const int count = checkCuts<W>(*row, problem, machine, lookup, operands, got);
  if (cuts != nullptr) *cuts += count;
}

}  // namespace aglow::cpu
