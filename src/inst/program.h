// The instruction IR: typed regions of memory, and a list of instructions over their addresses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "inst/plan.h"
#include "ops/attrs.h"
#include "ops/op.h"
#include "tensor/tensor.h"

namespace aglow {

// A region's index in its program. Views stand after their bases once lifetimes are marked.
using RegionId = int32_t;
inline constexpr RegionId kNoRegion = -1;

// How an instruction touches an operand; for a placeholder, how the program does as a whole. Scratch is memory whose
// contents mean nothing before and after.
enum class Access : uint8_t { In, Out, InOut, Scratch };
inline bool reads(Access a) { return a == Access::In || a == Access::InOut; }
inline bool writes(Access a) { return a != Access::In; }

// Where a region's bytes come from. The first five are declared: they live as long as the program, and programs of one
// module share them by their names. State, splat and xavier are state: they begin with a value, may be written, and
// keep their bytes from run to run.
struct ConstantInit {
  Tensor bytes;
};
struct PlaceholderInit {
  Access access = Access::In;  // its bytes are given (In), asked for (Out), or both
};
struct StateInit {
  Tensor initial;
};
struct SplatInit {
  double value = 0;
};
// Uniform values within sqrt(3 / fanIn) of zero, always the same for a seed.
struct XavierInit {
  int64_t fanIn = 1;
  uint64_t seed = 0;
};
// Lives from its `alloc` to its `dealloc`; the offset in the arena is known once the program is placed.
struct Allocated {
  static constexpr int64_t kUnplaced = -1;
  int64_t offset = kUnplaced;
};
// Bytes of another region, from an offset on.
struct ViewOf {
  RegionId base = kNoRegion;
  int64_t offset = 0;
};
// A value inside of one fused instruction, which never lies in memory.
struct Local {};

struct Region {
  std::string name;
  Type type;
  std::variant<ConstantInit, PlaceholderInit, StateInit, SplatInit, XavierInit, Allocated, ViewOf, Local> source;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&source);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&source);
  }
  bool declared() const { return !as<Allocated>() && !as<ViewOf>() && !as<Local>(); }
  bool isState() const { return as<StateInit>() || as<SplatInit>() || as<XavierInit>(); }
};

struct Operand {
  RegionId region = kNoRegion;  // none: an optional operand that is absent
  Access access = Access::In;
};

struct Instr {
  enum class Kind : uint8_t {
    Compute,     // the operator of attrs: its results, its operands, then scratch
    Alloc,       // one operand: an allocated region
    Dealloc,     // one operand: an allocated region
    TensorView,  // one operand: a view
    Copy,        // destination, source
    CopyStart,   // destination, source; nobody may touch the one or write the other until the wait
    CopyWait,    // destination, source of the start with the same token
    Fused,       // the body as one: what it writes outside, what it reads from there first, then scratch
  };

  Kind kind = Kind::Compute;
  Attrs attrs = {};
  std::vector<Operand> operands = {};
  RegionId predicate = kNoRegion;  // where it is false the results may be anything
  int64_t token = 0;               // CopyStart, CopyWait
  std::string origin = {};         // the model's node it came from
  std::vector<Instr> body = {};    // Fused: Compute instructions in order, under the predicate of the whole
  std::optional<Plan> plan = {};   // Compute, Fused: how the backend runs it, once that is chosen
  bool beside = false;             // may run at the same time as the instruction before it, and those beside that one
  bool chained = false;            // runs part by part with the instruction before it, and those chained to that one

  // Only marks where regions begin and end; does nothing when run.
  bool isMarker() const { return kind == Kind::Alloc || kind == Kind::Dealloc || kind == Kind::TensorView; }
  bool computes() const { return kind == Kind::Compute || kind == Kind::Fused; }
  // Compute, Fused: the operands that stand for results, and those after them that are not scratch.
  std::span<const Operand> results() const;
  std::span<const Operand> inputs() const;
};

std::string_view instrName(const Instr& instr);
std::string_view accessName(Access access);

// The bytes of a region inside the one that owns them.
struct Extent {
  RegionId root = kNoRegion;
  int64_t begin = 0;
  int64_t end = 0;

  bool overlaps(const Extent& other) const { return root == other.root && begin < other.end && other.begin < end; }
  bool operator==(const Extent&) const = default;
};

class Program {
public:
  static constexpr int64_t kAlignment = Tensor::kAlignment;

  std::string name;
  std::vector<Region> regions;
  std::vector<Instr> instrs;
  int64_t arenaBytes = Allocated::kUnplaced;  // known once placed

  RegionId add(Region region);  // names are unique; the caller sees to that
  Region& operator[](RegionId id) { return regions[static_cast<size_t>(id)]; }
  const Region& operator[](RegionId id) const { return regions[static_cast<size_t>(id)]; }

  bool placed() const { return arenaBytes != Allocated::kUnplaced; }
  // Forgets the placement, because buffers or lifetimes change.
  void unplace();

  Extent extent(RegionId id) const;
  // Of all regions at once.
  std::vector<Extent> extents() const;

  // Placeholders whose bytes are given, and those whose bytes are asked for, in order.
  std::vector<RegionId> inputs() const;
  std::vector<RegionId> outputs() const;
  // Of constants, and of everything declared.
  int64_t constantBytes() const;
  int64_t declaredBytes() const;
};

// Whether a result that nobody reads has no region: of composites that a backend keeps, all but the first.
inline bool mayBeAbsent(const OpDef& op, size_t result) { return op.kind == OpKind::Composite && result > 0; }

// Whether a result may be written over one of the inputs. Of a Compute instruction the first result may, if the record
// says so and the types are equal: over any input for elementwise operators, over the first such for others. For a
// fused instruction see mayOverwriteInBody.
bool mayOverwrite(const Program& program, const Instr& instr, size_t input, size_t result = 0);

// Same regions under the same names, same instructions, same placement; the regions' numbers do not matter.
bool operator==(const Program& a, const Program& b);

// What programs of one module share: their declared regions, each once, in an order that is that of every program.
// Placeholders are there without a meaning of their access, which is each program's own.
std::vector<const Region*> sharedRegions(std::span<const Program> programs);
// Whether two declared regions of one name may stand for the same bytes: type and initial value are equal.
bool sameStorage(const Region& a, const Region& b);

// The bytes a declared region starts with; internal error for placeholders.
Tensor initialValue(const Region& region);

}  // namespace aglow
