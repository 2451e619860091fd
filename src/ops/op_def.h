// The record of an operator: all that is known of it, in one place, as constant data.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ops/costs.h"
#include "ops/formula.h"
#include "support/error.h"
#include "tensor/type.h"

namespace aglow {

class Attrs;

// A short list that a constexpr record can hold by value.
template <class T, int N>
class FixedList {
public:
  constexpr FixedList() = default;
  constexpr FixedList(std::initializer_list<T> items) {
    for (const T& item : items) items_[static_cast<size_t>(size_++)] = item;
  }
  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](int i) const { return items_[static_cast<size_t>(i)]; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }

private:
  std::array<T, N> items_{};
  int size_ = 0;
};

// What becomes of an operator on its way down.
enum class OpKind : uint8_t {
  Storage,      // Constant, Placeholder, Save: no computation
  Elementwise,  // core: a formula over broadcast operands
  Core,         // core: a reference kernel, which is the interpreter
  View,         // core: the same bytes under another shape, no instruction of its own
  Target,       // made by the layout pass for backends with vector units, never imported; a reference kernel
  Composite,    // a lowering rule turns it into others
  Derivative,   // a request for gradients: the phase that differentiates turns it into others
};

// How gradients pass an operator on their way back.
enum class GradientBy : uint8_t {
  None,      // not at all: a model that asks for it is refused
  Zero,      // its results change in steps: the gradient is zero
  Formula,   // every elementwise operator: derived from its formula
  Rule,      // a rule in src/grad
  Lowering,  // a composite: what it is lowered to is differentiated
};

enum class Arity : uint8_t { One, Optional, Variadic };

struct OperandDef {
  std::string_view name;
  KindSet kinds = 0;
  char typeVar = 0;  // operands with the same letter have the same element kind
  Arity arity = Arity::One;
};

struct ResultDef {
  std::string_view name;
};

enum class AttrKind : uint8_t { Int, Bool, Float, Ints, Floats, Enum, Word, Elem };

struct AttrDef {
  std::string_view name;
  AttrKind kind = AttrKind::Int;
  double number = 0;              // default of Int, Bool and Float; lists are empty by default
  std::string_view choices = {};  // Enum: "a|b|c", the first is the default
  ElemKind elem = ElemKind::Float32;
  std::string_view doc = {};
  std::string_view whenEmpty = {};  // Word: what an empty one stands for
  bool hint = false;                // says how results are computed, not which: no other format has it
};

struct InferContext {
  const struct OpDef& op;
  const Attrs& attrs;
  std::span<const Type* const> in;  // null where an optional operand is absent

  const Type& type(int i) const { return *in[static_cast<size_t>(i)]; }
  bool has(int i) const { return i < static_cast<int>(in.size()) && in[static_cast<size_t>(i)] != nullptr; }
};
using TypeRule = Result<std::vector<Type>>(const InferContext&);

// How ONNX writes an operator whose own kinds or form are not ONNX's.
struct StandardForm {
  std::string_view name;            // of the ONNX operator; empty: the form chooses it
  KindSet kinds = 0;                // that it takes, of operands with a type letter (of the first, where none has one)
  std::string_view form = "plain";  // the function in import/onnx/export_forms.h that writes it
};

struct OpDef {
  std::string_view name;
  std::string_view doc;
  OpKind kind = OpKind::Core;
  FixedList<OperandDef, 10> in = {};
  FixedList<ResultDef, 4> out = {{"y"}};
  FixedList<AttrDef, 14> attrs = {};
  TypeRule* infer = nullptr;   // checks what kinds and arity cannot say, and gives the results' types
  CostRule* cost = nullptr;    // of what has a kernel; a formula's cost is the number of its operations
  Formula scalar = {};         // Elementwise
  std::string_view onnx = {};  // the ONNX operator with the same operands and attributes, imported as it is
  StandardForm standard = {};  // for export; elementwise operators with an `onnx` name need none
  GradientBy gradient = GradientBy::None;
  bool inPlace = false;    // the result may overwrite the first operand of the same type
  bool pointwise = false;  // not elementwise, but each element comes from the operands' elements at the same place
  bool picks = false;      // reads no more bytes of its first operand than it writes
  struct {
    double low = -4, high = 4;  // where random tests draw operands from
  } probe = {};

  // Every element of the result comes from the operands' elements at the same place, broadcast.
  constexpr bool isDataParallel() const { return kind == OpKind::Elementwise || pointwise; }
  constexpr GradientBy gradientBy() const { return kind == OpKind::Elementwise ? GradientBy::Formula : gradient; }
};

}  // namespace aglow
