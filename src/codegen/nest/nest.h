// One instruction as loops, in plain data: the axes, what is read and written along them, and what is computed at each
// point, in which kinds and with which rounding. Everything about the meaning is decided here, once; a code generator
// only prints it.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "inst/program.h"
#include "ops/formula.h"
#include "tensor/convert.h"

namespace aglow::nest {

// Parallel axes may run in any order. Row axes are the last ones, in nests with reductions: their points are one row,
// which is passed over once in each stage.
struct Axis {
  enum class Role : uint8_t { Parallel, Row };
  int64_t extent = 1;
  Role role = Role::Parallel;

  bool operator==(const Axis&) const = default;
};

// What lies at one of the addresses a nest is given: those of the instruction's operands, in their order.
struct Operand {
  ElemKind kind = ElemKind::Float32;
  aglow::Access access = aglow::Access::In;
  int64_t elements = 0;
};

// Numbers that are part of the code.
struct Table {
  ElemKind kind = ElemKind::Float32;  // f32, f64, or a byte of tables that are looked up in
  std::vector<double> values;

  bool operator==(const Table&) const = default;
};

// A way to walk over an operand or a table: at a point, the element numbered offset + sum of index * stride.
struct Access {
  int operand = -1;  // or
  int table = -1;
  ElemKind kind = ElemKind::Float32;
  std::vector<int64_t> strides;  // one for each axis
  int64_t offset = 0;

  bool operator==(const Access&) const = default;
};

// Values have element kinds. Computed in are f32, f64, i32, u32, i64 and u64, and bool, a truth value, which a byte
// that is not 0 stands for in memory. The other kinds (never quantized ones: nests see the integers that store those)
// only lie in memory; a value of such a kind is the stored bits.
bool isComputed(ElemKind kind);
bool isReal(ElemKind kind);  // f32, f64

struct Expr {
  enum class Op : uint8_t {
    Load,     // the element of access `a` at the point
    Number,   // a literal
    Apply,    // `scalar` on values a, b, c, all of this kind; but Eq, Lt and IsNan give bool, And, Or, Xor, Eq and
              // Select also take bools, and Select's condition is one
    Convert,  // value a as a number of another kind, in one of the ways that `converts` lists
    Kept,     // the element of row `a` at the point, as an earlier stage stored it
    Reduced,  // what reduction `a` of an earlier stage has come to
    Given,    // an epilogue's operand: the anchor's result at the point
    Lookup,   // the entry of table `b`, which has 256, that the stored byte of value `a` numbers
  };
  Op op = Op::Number;
  ElemKind kind = ElemKind::Float32;
  Scalar scalar = Scalar::Const;
  int a = -1, b = -1, c = -1;
  uint64_t number =
      0;  // the bits: of a double for floats that are computed in, of 64 bits for integers, else as stored
  bool saturate = false;                            // Convert to a float of 8 bits, as Cast has it
  ScaleRounding rounding = ScaleRounding::Nearest;  // Convert to f8e8m0

  double real() const { return std::bit_cast<double>(number); }
  bool operator==(const Expr&) const = default;
};

// Value `value` at the point goes to an access, or into a row for later stages.
struct Store {
  int value = -1;
  int access = -1;  // or
  int row = -1;
};

// Combines the values at the points of a row, in any order, by Add, Mul, Max or Min.
struct Reduction {
  // Which sums of `narrow` values are as good as the wide one. Finite: none has left the range of f32 on the way.
  // Normal: nor has a product vanished, since the sum is too large for those to matter.
  enum class Trust : uint8_t { Always, Finite, Normal };
  static constexpr double kNormal = 0x1p-90;

  Scalar combine = Scalar::Add;
  ElemKind kind = ElemKind::Float32;
  uint64_t start = 0;  // the neutral value, as in Expr::number
  int value = -1;
  // The value in f32, of a sum in f64: a printer may add these up instead, in f32 and not too many after one another.
  int narrow = -1;
  Trust trust = Trust::Finite;
};

// Values [begin, end) of the nest, each computed from those before it; then the stores, which stand after all loads
// because a result may take the place of an operand.
struct Block {
  int begin = 0, end = 0;
  std::vector<Store> stores;

  bool empty() const { return begin == end && stores.empty(); }
};

// First what is known once for the row: later blocks of the nest see these values. Then one pass over the points, also
// where all that is combined there is known for the row.
struct Stage {
  Block row;
  Block each;
  std::vector<int> reductions;  // complete when the pass ends

  bool passes() const { return !each.empty() || !reductions.empty(); }
};

struct Nest {
  std::vector<Axis> axes;  // outer to inner, never none
  std::vector<Operand> operands;
  std::vector<Table> tables;
  std::vector<Access> accesses;
  std::vector<ElemKind> rows;  // kept between stages, as long as a row each
  std::vector<Reduction> reductions;
  std::vector<Expr> values;
  std::vector<Stage> stages;
  int64_t chunk = 0;  // points of the last axis in one unit; 0: all

  // The axes inside of a row: those marked so, or the last one.
  int innerAxes() const;
  int64_t rowCount() const;
  int64_t rowLength() const;
  int64_t chunks() const;
  // Independent pieces of work, rows or chunks of rows in order. A property of the nest: any number of threads may
  // share them and gives the same bits.
  int64_t units() const;
  const Expr& value(int id) const { return values[static_cast<size_t>(id)]; }
};

}  // namespace aglow::nest
