// From instructions to nests. The form and the stages of a body are those of inst/fused.h; here every operand becomes
// an access, every instruction values, and what one stage computes for a later one a row or a number.
#include "codegen/nest/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "codegen/nest/combination.h"
#include "codegen/nest/kinds.h"
#include "codegen/nest/values.h"
#include "inst/fused.h"
#include "inst/rows.h"
#include "support/check.h"

namespace aglow::nest {

namespace {

constexpr int64_t kChunk = 8192;  // points of a unit, where a row can be cut

class Builder {
public:
  Builder(const Program& program, const Instr& instr)
      : program_(program), instr_(instr), operands_(instr.operands), values_(nest_) {
    for (const aglow::Operand& operand : operands_) {
      if (operand.region == kNoRegion) {
        nest_.operands.push_back({.access = operand.access});
        continue;
      }
      const Type& type = program[operand.region].type;
      nest_.operands.push_back(
          {.kind = storageKind(type.kind()), .access = operand.access, .elements = type.elements()});
    }
    // A result may take the place of an operand, so only what was computed before counts.
    std::unordered_map<RegionId, int> byResult;
    for (const Instr& step : bodyOf(instr)) {
      Member member{.instr = &step, .result = step.results()[0].region};
      for (const aglow::Operand& input : step.inputs()) {
        const auto it = byResult.find(input.region);
        member.from.push_back(it == byResult.end() ? -1 : it->second);
      }
      byResult[member.result] = static_cast<int>(members_.size());
      members_.push_back(std::move(member));
    }
  }

  Nest loops() {
    const std::vector<const Instr*> steps = bodySteps(instr_);
    Result<BodyForm> form = formOf(program_, steps);
    AGLOW_CHECK(form.ok() && !form->anchored, "the instruction is not a nest");
    form_ = *std::move(form);
    const std::vector<int> stages = stagesOf(program_, steps);
    int last = 0;
    for (size_t m = 0; m < members_.size(); ++m) {
      Member& member = members_[m];
      const bool reduces = !member.instr->attrs.op().isDataParallel();
      const bool whole = !form_.reduces() || shapeOf(member.result) == form_.shape;
      member.role = reduces ? Role::Reduction : whole ? Role::Full : Role::Row;
      member.stage = stages[m];
      last = std::max(last, member.stage + (reduces ? 1 : 0));
    }
    for (int stage = 0; stage <= last; ++stage) addStage(stage);
    if (nest_.stages.back().row.empty() && !nest_.stages.back().passes()) nest_.stages.pop_back();
    joinAxes();
    return std::move(nest_);
  }

  Nest epilogue(std::span<const int64_t> view, std::optional<ElemKind> given) {
    view_ = view;
    form_.shape = shapeOf(members_.front().result);
    for (const int64_t extent : view) nest_.axes.push_back({.extent = extent});
    Stage stage;
    values_.open(stage.row);
    values_.close(stage.row);
    values_.open(stage.each);
    const ElemKind kind = storageKind(typeOf(members_.front().result).kind());
    members_.front().value =
        values_.convert(values_.add({.op = Expr::Op::Given, .kind = given.value_or(computedKind(kind))}), kind);
    for (Member& member : std::span(members_).subspan(1)) compute(member);
    values_.close(stage.each);
    for (const Member& member : members_) store(member, stage.each);
    nest_.stages.push_back(std::move(stage));
    return std::move(nest_);
  }

private:
  enum class Role : uint8_t { Full, Row, Reduction };
  struct Member {
    const Instr* instr = nullptr;
    RegionId result = kNoRegion;
    std::vector<int> from = {};  // the member that computes each input, -1: it comes from memory
    Role role = Role::Full;
    int stage = 0;
    int value = -1;  // Reduction: known in the stage after its own
    int row = -1;    // where it is kept for later stages
  };

  const Type& typeOf(RegionId id) const { return program_[id].type; }
  const Shape& shapeOf(RegionId id) const { return program_[id].type.shape(); }

  // ---------------------------------------------------------------- accesses

  int slotOf(RegionId region) const {
    const auto same = [&](const aglow::Operand& o) { return o.region == region; };
    const auto it = std::find_if(operands_.begin(), operands_.end(), same);
    return it == operands_.end() ? -1 : static_cast<int>(it - operands_.begin());
  }

  int access(Access wanted) {
    const auto it = std::find(nest_.accesses.begin(), nest_.accesses.end(), wanted);
    if (it != nest_.accesses.end()) return static_cast<int>(it - nest_.accesses.begin());
    nest_.accesses.push_back(std::move(wanted));
    return static_cast<int>(nest_.accesses.size()) - 1;
  }

  // Strides over the axes of a tensor that a member reads or writes as if it had the shape `own`. The shape of a value
  // per row lacks the row's axes, or has them as 1.
  std::vector<int64_t> stridesOf(const Shape& tensor, const Shape& own) const {
    if (!view_.empty()) {
      std::optional<std::vector<int64_t>> found = stridesInView(tensor, form_.shape, view_);
      AGLOW_CHECK(found.has_value(), fmt::format("{} cannot be part of an epilogue", tensor.text()));
      return *std::move(found);
    }
    std::vector<int64_t> strides = broadcastStrides(tensor, own);
    for (int axis = 0; axis < own.rank(); ++axis)
      if (own[axis] == 1) strides[static_cast<size_t>(axis)] = 0;
    strides.resize(static_cast<size_t>(form_.shape.rank()), 0);
    return strides;
  }

  int access(RegionId region, const Shape& own) {
    return access({.operand = slotOf(region),
                   .kind = storageKind(typeOf(region).kind()),
                   .strides = stridesOf(shapeOf(region), own)});
  }

  // Numbers along an axis are a table in the code.
  int table(ElemKind kind, std::vector<double> numbers, int axis, const Shape& own) {
    std::vector<int64_t> dims(static_cast<size_t>(own.rank()), 1);
    dims[static_cast<size_t>(axis)] = own[axis];
    Table wanted{kind, std::move(numbers)};
    const auto it = std::find(nest_.tables.begin(), nest_.tables.end(), wanted);
    const int number = static_cast<int>(it - nest_.tables.begin());
    if (it == nest_.tables.end()) nest_.tables.push_back(std::move(wanted));
    return access({.table = number, .kind = kind, .strides = stridesOf(Shape(std::move(dims)), own)});
  }

  // Neighbouring axes that every access walks as one become one; but rows that may be skipped stay apart.
  void joinAxes() {
    const int outer = form_.shape.rank() - form_.rowAxes;
    const bool byRow = outer > 0 && predicateRows(program_, instr_) == form_.shape[0];
    std::vector<std::vector<int64_t>> strides(nest_.accesses.size());
    for (int axis = 0; axis < form_.shape.rank(); ++axis) {
      const int64_t extent = form_.shape[axis];
      if (extent == 1) continue;
      const Axis::Role role = axis < outer ? Axis::Role::Parallel : Axis::Role::Row;
      const auto along = [&](size_t k) { return nest_.accesses[k].strides[static_cast<size_t>(axis)]; };
      bool joins = !nest_.axes.empty() && nest_.axes.back().role == role && !(byRow && nest_.axes.size() == 1);
      for (size_t k = 0; joins && k < strides.size(); ++k) joins = strides[k].back() == along(k) * extent;
      if (joins)
        nest_.axes.back().extent *= extent;
      else
        nest_.axes.push_back({extent, role});
      for (size_t k = 0; k < strides.size(); ++k) {
        if (joins) strides[k].pop_back();
        strides[k].push_back(along(k));
      }
    }
    if (nest_.axes.empty()) {
      nest_.axes.push_back({});
      for (auto& steps : strides) steps.push_back(0);
    }
    for (size_t k = 0; k < strides.size(); ++k) nest_.accesses[k].strides = std::move(strides[k]);
    if (!form_.reduces() && nest_.axes.back().extent > 2 * kChunk) nest_.chunk = kChunk;
  }

  // ---------------------------------------------------------------- values

  // What is computed once per row before the pass, then the pass.
  void addStage(int number) {
    nest_.stages.emplace_back();
    const auto block = [&](auto choose, auto work) {
      values_.open(choose(nest_.stages.back()));
      std::vector<const Member*> computed;
      for (Member& member : members_)
        if (work(member)) computed.push_back(&member);
      Block& open = choose(nest_.stages.back());
      values_.close(open);
      for (const Member* member : computed) store(*member, open);
    };
    stage_ = number;
    block([](Stage& stage) -> Block& { return stage.row; },
          [&](Member& member) {
            if (member.role == Role::Reduction && member.stage + 1 == number) return finish(member);
            return member.role == Role::Row && member.stage == number && compute(member);
          });
    block([](Stage& stage) -> Block& { return stage.each; },
          [&](Member& member) {
            if (member.stage != number) return false;
            if (member.role == Role::Reduction) reduce(member);
            return member.role == Role::Full && compute(member);
          });
  }

  const Shape& ownShape(const Member& member) const {
    return member.role == Role::Reduction ? form_.shape : shapeOf(member.result);
  }

  int operand(const Member& member, int i) {
    const RegionId region = member.instr->inputs()[static_cast<size_t>(i)].region;
    const int producer = member.from[static_cast<size_t>(i)];
    if (producer < 0) {
      if (const std::optional<double> number = literalOf(program_, region))
        return values_.number(typeOf(region).kind(), *number);
      return values_.load(access(region, ownShape(member)));
    }
    Member& from = members_[static_cast<size_t>(producer)];
    if (from.role != Role::Full || from.stage == stage_) return from.value;
    if (from.instr->inputs().empty()) return instruction(from);
    if (slotOf(from.result) >= 0) return values_.load(access(from.result, shapeOf(from.result)));
    if (from.row < 0) keep(from);
    return values_.add({.op = Expr::Op::Kept, .kind = nest_.rows[static_cast<size_t>(from.row)], .a = from.row});
  }

  void keep(Member& member) {
    member.row = static_cast<int>(nest_.rows.size());
    nest_.rows.push_back(nest_.value(member.value).kind);
    nest_.stages[static_cast<size_t>(member.stage)].each.stores.push_back({.value = member.value, .row = member.row});
  }

  int instruction(const Member& member) {
    const auto perAxis = [&](ElemKind kind, std::vector<double> numbers, int axis) {
      return values_.load(table(kind, std::move(numbers), axis, shapeOf(member.result)));
    };
    return values_.instruction(program_, *member.instr, [&](int i) { return operand(member, i); }, perAxis);
  }

  bool compute(Member& member) {
    member.value = instruction(member);
    return true;
  }

  void store(const Member& member, Block& block) {
    if (slotOf(member.result) >= 0)
      block.stores.push_back({.value = member.value, .access = access(member.result, shapeOf(member.result))});
  }

  // ---------------------------------------------------------------- reductions

  void reduce(Member& member) {
    const std::string& how = member.instr->attrs.word("kind");
    const ElemKind element = storageKind(typeOf(member.result).kind());
    const auto [combine, kind, start] = combinationOf(how, element);
    Reduction reduction{.kind = kind, .value = values_.convert(operand(member, 0), kind)};
    reduction.combine = combine;
    reduction.start = start;
    if (reduction.combine == Scalar::Add && kind == ElemKind::Float64 && endsNarrow(member)) {
      reduction.narrow = narrowed(reduction.value);
      if (reduction.narrow >= 0) reduction.trust = trustIn(reduction.narrow, how == "sum");
      // Who asks for sums in f64 of what may cancel each other means it.
      if (element == kind && reduction.trust != Reduction::Trust::Normal) reduction.narrow = -1;
    }
    member.value = static_cast<int>(nest_.reductions.size());
    nest_.stages.back().reductions.push_back(member.value);
    nest_.reductions.push_back(reduction);
  }

  // Whether nothing sees more of a result than f32 holds: it is not wider, or a root is taken of it, which may stand on
  // a constant, before it becomes as narrow.
  bool endsNarrow(const Member& member) const {
    if (typeOf(member.result).kind() != ElemKind::Float64) return true;
    if (slotOf(member.result) >= 0) return false;
    const auto self = static_cast<int>(&member - members_.data());
    bool used = false;
    for (const Member& user : members_) {
      if (std::find(user.from.begin(), user.from.end(), self) == user.from.end()) continue;
      const Op op = opOf(user.instr->attrs.op());
      const bool root = op == Op::Sqrt, sum = op == Op::Add && addsToIt(user, self);
      if (op != Op::Cast && !root && !sum) return false;
      if (!endsNarrow(user)) return false;
      used = true;
    }
    return used;
  }

  bool addsToIt(const Member& sum, int term) const {
    const size_t other = sum.from[0] == term ? 1 : 0;
    const RegionId region = sum.instr->inputs()[other].region;
    const auto* constant = program_[region].as<ConstantInit>();
    if (constant == nullptr) return false;
    const std::vector<double> numbers = constant->bytes.doubles();
    return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x >= 0; });
  }

  // The same value in f32, if it is such a value or its square. Other products may cancel each other.
  int narrowed(int id) {
    const Expr e = nest_.value(id);
    if (e.op == Expr::Op::Convert && nest_.value(e.a).kind == ElemKind::Float32) return e.a;
    if (e.op != Expr::Op::Apply || e.kind != ElemKind::Float64 || e.scalar != Scalar::Mul || e.a != e.b) return -1;
    const int a = narrowed(e.a);
    return a < 0 ? -1 : values_.apply(Scalar::Mul, ElemKind::Float32, a, a);
  }

  // A sum that is f32 in the end, of terms that are not negative, leaves the range only if its result does.
  Reduction::Trust trustIn(int narrow, bool isSum) const {
    const Expr& e = nest_.value(narrow);
    if (e.op == Expr::Op::Apply && e.scalar == Scalar::Mul) return Reduction::Trust::Normal;
    const bool positive = e.op == Expr::Op::Apply && (e.scalar == Scalar::Exp || e.scalar == Scalar::Abs);
    return positive && isSum ? Reduction::Trust::Always : Reduction::Trust::Finite;
  }

  bool finish(Member& member) {
    const ElemKind kind = nest_.reductions[static_cast<size_t>(member.value)].kind;
    int total = values_.add({.op = Expr::Op::Reduced, .kind = kind, .a = member.value});
    if (member.instr->attrs.word("kind") == "mean") {
      const auto count = static_cast<double>(reducedRow(program_, *member.instr));
      total = values_.apply(Scalar::Div, kind, total, values_.number(kind, count));
    }
    member.value = values_.convert(total, typeOf(member.result).kind());
    return true;
  }

  const Program& program_;
  const Instr& instr_;
  std::span<const aglow::Operand> operands_;
  Nest nest_;
  Values values_;
  BodyForm form_;
  std::span<const int64_t> view_;  // of an epilogue
  std::vector<Member> members_;
  int stage_ = 0;
};

}  // namespace

std::optional<double> literalOf(const Program& program, RegionId region) {
  constexpr double kMost = 0x1p16;
  const auto* constant = program[region].as<ConstantInit>();
  const Type& type = program[region].type;
  if (constant == nullptr || type.elements() != 1 || !isReal(type.kind())) return std::nullopt;
  const double number = constant->bytes.doubles().front();
  if (!(std::fabs(number) <= kMost) || std::trunc(2 * number) != 2 * number) return std::nullopt;
  return number;
}

bool isNest(const Program& program, const Instr& instr) {
  if (instr.kind == Instr::Kind::Compute) return instr.attrs.op().isDataParallel();
  if (instr.kind != Instr::Kind::Fused) return false;
  const Result<BodyForm> form = formOf(program, bodySteps(instr));
  return form.ok() && !form->anchored;
}

Nest nestOf(const Program& program, const Instr& instr) { return Builder(program, instr).loops(); }

Nest epilogueOf(const Program& program, const Instr& instr, std::span<const int64_t> view,
                std::optional<ElemKind> given) {
  return Builder(program, instr).epilogue(view, given);
}

std::optional<Nest> nestIn(const Program& program, const Instr& instr) {
  const bool whole = isNest(program, instr);
  if (!whole && instr.kind != Instr::Kind::Fused) return std::nullopt;
  const Shape& shape = program[bodyOf(instr).front().results()[0].region].type.shape();
  if (shape.elements() == 0) return std::nullopt;
  if (whole) return nestOf(program, instr);
  return epilogueOf(program, instr, shape.rank() == 0 ? std::vector<int64_t>{1} : shape.dims());
}

std::optional<std::vector<int64_t>> stridesInView(const Shape& from, const Shape& shape,
                                                  std::span<const int64_t> view) {
  const std::vector<int64_t> strides = broadcastStrides(from, shape);
  std::vector<int64_t> result(view.size());
  int axis = 0;
  for (size_t v = 0; v < view.size(); ++v) {
    int64_t covered = 1;
    bool started = false;
    while (covered < view[v]) {
      if (axis == shape.rank()) return std::nullopt;
      const int64_t extent = shape[axis];
      const int64_t stride = strides[static_cast<size_t>(axis++)];
      if (extent == 1) continue;
      if (started && result[v] != stride * extent) return std::nullopt;
      result[v] = stride;
      started = true;
      covered *= extent;
    }
    if (covered != view[v]) return std::nullopt;
  }
  return result;
}

}  // namespace aglow::nest
