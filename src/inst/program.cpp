// Regions, instructions and what can be asked of a program without analysing it.
#include "inst/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <list>
#include <unordered_map>

#include "graph/syntax.h"
#include "inst/fused.h"
#include "support/sizes.h"

namespace aglow {

namespace {

size_t resultCount(const Instr& instr) {
  if (instr.kind != Instr::Kind::Fused) return static_cast<size_t>(instr.attrs.op().out.size());
  size_t count = 0;
  const auto isResult = [](Access access) { return access == Access::Out || access == Access::InOut; };
  while (count < instr.operands.size() && isResult(instr.operands[count].access)) ++count;
  return count;
}

}  // namespace

std::span<const Operand> Instr::results() const { return std::span(operands).first(resultCount(*this)); }

std::span<const Operand> Instr::inputs() const {
  size_t end = operands.size();
  while (end > 0 && operands[end - 1].access == Access::Scratch) --end;
  const size_t results = resultCount(*this);
  return std::span(operands).subspan(results, end - results);
}

std::string_view instrName(const Instr& instr) {
  static constexpr std::array<std::string_view, 8> kNames = {"",     "alloc",      "dealloc",   "tensorview",
                                                             "copy", "copy.start", "copy.wait", "fused"};
  return instr.kind == Instr::Kind::Compute ? instr.attrs.op().name : kNames[static_cast<size_t>(instr.kind)];
}

std::string_view accessName(Access access) {
  static constexpr std::array<std::string_view, 4> kNames = {"in", "out", "inout", "scratch"};
  return kNames[static_cast<size_t>(access)];
}

RegionId Program::add(Region region) {
  regions.push_back(std::move(region));
  return static_cast<RegionId>(regions.size() - 1);
}

void Program::unplace() {
  arenaBytes = Allocated::kUnplaced;
  for (Region& region : regions)
    if (auto* allocated = region.as<Allocated>()) allocated->offset = Allocated::kUnplaced;
}

Extent Program::extent(RegionId id) const {
  int64_t begin = 0;
  const int64_t bytes = (*this)[id].type.bytes();
  while (const auto* view = (*this)[id].as<ViewOf>()) {
    begin += view->offset;
    id = view->base;
  }
  return {id, begin, begin + bytes};
}

std::vector<Extent> Program::extents() const {
  std::vector<Extent> all(regions.size());
  for (size_t i = 0; i < regions.size(); ++i) {
    const auto id = static_cast<RegionId>(i);
    const auto* view = regions[i].as<ViewOf>();
    if (view == nullptr || view->base >= id) {
      all[i] = extent(id);
      continue;
    }
    const Extent& base = all[static_cast<size_t>(view->base)];
    const int64_t begin = base.begin + view->offset;
    all[i] = {base.root, begin, begin + regions[i].type.bytes()};
  }
  return all;
}

namespace {

template <class Condition>
std::vector<RegionId> placeholders(const Program& program, Condition&& condition) {
  std::vector<RegionId> found;
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (const auto* p = program.regions[i].as<PlaceholderInit>(); p != nullptr && condition(p->access))
      found.push_back(static_cast<RegionId>(i));
  return found;
}

}  // namespace

std::vector<RegionId> Program::inputs() const { return placeholders(*this, reads); }
std::vector<RegionId> Program::outputs() const { return placeholders(*this, writes); }

namespace {

// Types of a hostile model are valid one by one, but their sum may not fit.
template <class Condition>
int64_t sumBytes(const Program& program, Condition&& condition) {
  int64_t sum = 0;
  for (const Region& region : program.regions)
    if (condition(region)) sum = checkedAdd(sum, region.type.bytes()).value_or(std::numeric_limits<int64_t>::max());
  return sum;
}

}  // namespace

int64_t Program::constantBytes() const {
  return sumBytes(*this, [](const Region& region) { return region.as<ConstantInit>() != nullptr; });
}

int64_t Program::declaredBytes() const {
  return sumBytes(*this, [](const Region& region) { return region.declared(); });
}

bool mayOverwrite(const Program& program, const Instr& instr, size_t input, size_t result) {
  if (instr.kind == Instr::Kind::Fused)
    return mayOverwriteInBody(program, instr, instr.inputs()[input].region, instr.results()[result].region);
  if (result != 0 || instr.kind != Instr::Kind::Compute || !instr.attrs.op().inPlace) return false;
  const Type& type = program[instr.results()[0].region].type;
  const std::span<const Operand> inputs = instr.inputs();
  const auto fits = [&](size_t i) { return inputs[i].region != kNoRegion && program[inputs[i].region].type == type; };
  if (instr.attrs.op().kind == OpKind::Elementwise) return fits(input);
  for (size_t i = 0; i < input; ++i)
    if (fits(i)) return false;
  return fits(input);
}

namespace {

// Numbers differ if their bits do, as in the text form.
bool sameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Mostly the very same bytes.
bool sameBytes(const Tensor& a, const Tensor& b) { return a.type() == b.type() && (a.data() == b.data() || a == b); }

}  // namespace

bool sameStorage(const Region& a, const Region& b) {
  if (a.type != b.type || a.source.index() != b.source.index()) return false;
  if (const auto* c = a.as<ConstantInit>()) return sameBytes(c->bytes, b.as<ConstantInit>()->bytes);
  if (const auto* s = a.as<StateInit>()) return sameBytes(s->initial, b.as<StateInit>()->initial);
  if (const auto* s = a.as<SplatInit>()) return sameBits(s->value, b.as<SplatInit>()->value);
  if (const auto* x = a.as<XavierInit>())
    return x->fanIn == b.as<XavierInit>()->fanIn && x->seed == b.as<XavierInit>()->seed;
  return a.declared();
}

std::vector<const Region*> sharedRegions(std::span<const Program> programs) {
  std::list<const Region*> all;
  std::unordered_map<std::string_view, std::list<const Region*>::iterator> places;
  for (const Program& program : programs) {
    std::vector<const Region*> fresh;  // to stand before the program's next region that others have, or at the end
    const auto insertFresh = [&](std::list<const Region*>::iterator before) {
      for (const Region* region : fresh) places.emplace(region->name, all.insert(before, region));
      fresh.clear();
    };
    for (const Region& region : program.regions) {
      if (!region.declared()) continue;
      if (const auto it = places.find(region.name); it != places.end())
        insertFresh(it->second);
      else
        fresh.push_back(&region);
    }
    insertFresh(all.end());
  }
  return {all.begin(), all.end()};
}

namespace {

// Compares two programs; regions correspond by name.
class Comparison {
public:
  Comparison(const Program& a, const Program& b) : a_(a), b_(b) {}

  bool equal() {
    if (a_.name != b_.name || a_.arenaBytes != b_.arenaBytes) return false;
    if (a_.regions.size() != b_.regions.size() || a_.instrs.size() != b_.instrs.size()) return false;
    return matchRegions() && std::equal(a_.instrs.begin(), a_.instrs.end(), b_.instrs.begin(),
                                        [&](const Instr& x, const Instr& y) { return sameInstr(x, y); });
  }

private:
  bool matchRegions() {
    std::unordered_map<std::string_view, RegionId> inB;
    for (size_t i = 0; i < b_.regions.size(); ++i) inB.emplace(b_.regions[i].name, static_cast<RegionId>(i));
    for (const Region& region : a_.regions) {
      const auto it = inB.find(region.name);
      if (it == inB.end()) return false;
      counterpart_.push_back(it->second);
      const Region& other = b_[it->second];
      if (region.type != other.type || !sameSource(region, other)) return false;
    }
    return true;
  }

  bool sameSource(const Region& x, const Region& y) const {
    if (x.source.index() != y.source.index()) return false;
    if (const auto* p = x.as<PlaceholderInit>()) return p->access == y.as<PlaceholderInit>()->access;
    if (x.declared()) return sameStorage(x, y);
    if (const auto* m = x.as<Allocated>()) return m->offset == y.as<Allocated>()->offset;
    if (x.as<Local>() != nullptr) return true;
    const auto *v = x.as<ViewOf>(), *w = y.as<ViewOf>();
    return corresponds(v->base, w->base) && v->offset == w->offset;
  }

  bool corresponds(RegionId x, RegionId y) const {
    return (x == kNoRegion ? kNoRegion : counterpart_[static_cast<size_t>(x)]) == y;
  }

  static bool sameAttrs(const Instr& x, const Instr& y) {
    if (x.kind != Instr::Kind::Compute) return true;
    return &x.attrs.op() == &y.attrs.op() && printAttrs(x.attrs) == printAttrs(y.attrs);
  }

  bool sameInstr(const Instr& x, const Instr& y) const {
    return x.kind == y.kind && sameAttrs(x, y) && x.token == y.token && x.origin == y.origin && x.plan == y.plan &&
           x.beside == y.beside && x.chained == y.chained && corresponds(x.predicate, y.predicate) &&
           std::equal(x.operands.begin(), x.operands.end(), y.operands.begin(), y.operands.end(),
                      [&](const Operand& p, const Operand& q) {
                        return p.access == q.access && corresponds(p.region, q.region);
                      }) &&
           std::equal(x.body.begin(), x.body.end(), y.body.begin(), y.body.end(),
                      [&](const Instr& p, const Instr& q) { return sameInstr(p, q); });
  }

  const Program& a_;
  const Program& b_;
  std::vector<RegionId> counterpart_;  // in b_, of the regions of a_
};

}  // namespace

bool operator==(const Program& a, const Program& b) { return Comparison(a, b).equal(); }

namespace {

// A number in [-1, 1) for each index: the bits of a Weyl sequence, mixed.
double uniform(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1;
}

}  // namespace

Tensor initialValue(const Region& region) {
  if (const auto* constant = region.as<ConstantInit>()) return constant->bytes;
  if (const auto* state = region.as<StateInit>()) return state->initial;
  std::vector<double> values(static_cast<size_t>(region.type.elements()));
  if (const auto* splat = region.as<SplatInit>()) {
    values.assign(values.size(), splat->value);
  } else {
    const auto* xavier = region.as<XavierInit>();
    AGLOW_CHECK(xavier != nullptr, fmt::format("region '{}' has no value of its own", region.name));
    const double bound = std::sqrt(3.0 / static_cast<double>(xavier->fanIn));
    for (size_t i = 0; i < values.size(); ++i) values[i] = bound * uniform(xavier->seed, i);
  }
  return Tensor::fromDoubles(region.type, values);
}

}  // namespace aglow
