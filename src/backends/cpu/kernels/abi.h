// What kernels of the CPU library and generated code agree on. Kernels are compiled to bitcode once, whatever the
// target; generated code clones those it needs with the descriptor and the functions they call as constants, and the
// optimizer specialises the clones. So a kernel is written for any shape, includes no system header beyond <stdint.h>,
// calls no library, and takes everything about its shape from the descriptor.
//
//   extern "C" int32_t aglow_NAME(const NameDesc* d, void* const* p, int64_t begin, int64_t end, functions...);
//
// p holds the addresses of the results, the inputs and the scratch memory of the instruction, in this order (null for
// an absent optional operand), followed by what the epilogue reads and writes. The kernel does the work of the units
// begin to end out of those its plan counts; what a unit computes does not depend on how units are dealt out to
// threads, so every number of threads gives the same bits. It returns kDone, or what was wrong with a value.
//
// Kernels on vectors exist once per number of f32 lanes and end in _w4, _w8 or _w16.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

enum KernelStatus : int32_t {
  kDone = 0,
  kBadIndex = 1,  // an index lies outside of its axis
  kNoMatrix = 3,  // the system does not let the process use matrix registers: as if the processor had none
};

template <class T, int W>
using Lanes = T __attribute__((ext_vector_type(W)));

// Takes `count` neighbouring elements of a result (W, but for the last of a row), computes what is fused with them, and
// stores. The result is seen as four axes, as the plan says; the coordinates are of the first element, and the lanes
// run along the last axis.
template <int W, class T = float>
using Epilogue = void(Lanes<T, W> value, void* const* p, int64_t c0, int64_t c1, int64_t c2, int64_t c3, int64_t count);

// In each lane, the sum plus four products of an unsigned and a signed byte, as the target does it best.
template <int W>
using Dot = Lanes<int32_t, W>(Lanes<int32_t, W> sum, Lanes<int32_t, W> bytes, Lanes<int32_t, W> weights);

// In each lane, the sum plus two products of bf16.
template <int W>
using PairDot = Lanes<float, W>(Lanes<float, W> sum, Lanes<int32_t, W> pairs, Lanes<int32_t, W> weights);

// Two rows by two columns, each of eight bytes: unsigned by signed ones, or four bf16 by four. Lane 2 r + c is the sum
// plus the product of row r and column c; both operands hold one after the other.
template <class Sum>
using BlockDot = Lanes<Sum, 4>(Lanes<Sum, 4> sum, Lanes<int32_t, 4> rows, Lanes<int32_t, 4> columns);

// Element `index` of a tensor of any kind, widened to a domain: float, double or int64_t; and back, rounded or wrapped
// as the kind asks.
template <class D>
using Load = D(const void* base, int64_t index);
template <class D>
using Store = void(void* base, int64_t index, D value);

}  // namespace aglow::cpu
