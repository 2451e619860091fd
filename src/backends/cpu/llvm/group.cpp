// Groups of instructions as loops: every row is visited once, in as many stages as reductions wait for each other, and
// a value that only the group sees stays in registers (or, between stages, in a row on the stack).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

namespace {

constexpr int64_t kChunk = 8192;  // elements of a unit, where a row can be cut

bool isReduce(const Instr& instr) { return opOf(instr.attrs.op()) == Op::Reduce; }

// The axes of a loop nest, and for each memory operand its steps along them.
struct Nest {
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> steps;  // of each access
};

// Joins neighbouring axes that every access walks as one.
Nest joined(const Nest& nest) {
  Nest result;
  result.steps.resize(nest.steps.size());
  for (size_t axis = 0; axis < nest.extents.size(); ++axis) {
    const int64_t extent = nest.extents[axis];
    if (extent == 1) continue;
    bool joins = !result.extents.empty();
    for (size_t k = 0; joins && k < nest.steps.size(); ++k)
      joins = result.steps[k].back() == nest.steps[k][axis] * extent;
    if (joins) {
      result.extents.back() *= extent;
      for (size_t k = 0; k < nest.steps.size(); ++k) result.steps[k].back() = nest.steps[k][axis];
    } else {
      result.extents.push_back(extent);
      for (size_t k = 0; k < nest.steps.size(); ++k) result.steps[k].push_back(nest.steps[k][axis]);
    }
  }
  return result;
}

int64_t product(std::span<const int64_t> values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

class GroupEmitter {
public:
  GroupEmitter(const EmitContext& context, std::span<const Instr> body, std::span<const Operand> operands)
      : context_(context), program_(context.program), body_(body), b(context.module.getContext()) {
    for (const Operand& operand : operands) addresses_.push_back(operand.region);
  }

  Steps run(const std::string& name) {
    findShape();
    findStages();
    findAccesses();
    function_ = context_.newStep(name);
    b.SetInsertPoint(&function_->getEntryBlock());
    for (size_t slot = 0; slot < addresses_.size(); ++slot)
      pointers_.push_back(addressSlot(b, function_->getArg(0), static_cast<int>(slot)));
    const int64_t units = emitRows();
    b.CreateRet(b.getInt32(0));
    Step step{.function = function_, .units = units};
    for (const RegionId region : addresses_) step.addresses.push_back({region});
    return {std::move(step)};
  }

private:
  // One way to walk over an operand or a table: its address plus a step for each axis of the whole shape.
  struct Access {
    int slot = -1;  // of the addresses; -1: `table`
    llvm::Value* table = nullptr;
    std::vector<int64_t> steps;
    bool operator==(const Access&) const = default;
  };
  enum class Role : uint8_t { Full, Row, Reduction };
  struct Member {
    const Instr* instr = nullptr;
    Role role = Role::Full;
    int stage =
        0;  // Full: of its evaluation; Reduction: the stage that sums it up; Row: the stage before which it is known
    RegionId result = kNoRegion;
    std::vector<int> from;                          // the member that computes each input, -1: it comes from memory
    std::vector<int> reads;                         // Access of those that come from memory
    int write = -1;                                 // Access of the result, -1 where nobody else sees it
    llvm::AllocaInst* row = nullptr;                // a row of values for later stages
    std::map<int, llvm::AllocaInst*> accumulators;  // Reduction: by width
    llvm::Value* scalar = nullptr;                  // Row and Reduction: the stored element
  };

  const Type& typeOf(RegionId id) const { return program_[id].type; }

  // The shape of the group is that of its largest value; reductions say which trailing axes make a row.
  void findShape() {
    int reduced = 0;
    for (const Instr& instr : body_) {
      const Shape& result = typeOf(instr.results()[0].region).shape();
      if (shape_ == nullptr || result.elements() > shape_->elements() ||
          (result.elements() == shape_->elements() && result.rank() > shape_->rank()))
        shape_ = &result;
      if (!isReduce(instr)) continue;
      const Shape& input = typeOf(instr.inputs()[0].region).shape();
      if (input.elements() >= shape_->elements() && input.rank() >= shape_->rank()) shape_ = &input;
      reduced = std::max(reduced, static_cast<int>(instr.attrs.ints("axes").size()));
    }
    hasRows_ = reduced > 0;
    rowRank_ = hasRows_ ? shape_->rank() - reduced : shape_->rank();
  }

  int memberOf(RegionId region) const {
    const auto it = byResult_.find(region);
    return it == byResult_.end() ? -1 : it->second;
  }

  void findStages() {
    for (const Instr& instr : body_) {
      Member member{.instr = &instr, .result = instr.results()[0].region};
      const bool full = !hasRows_ || typeOf(member.result).shape() == *shape_;
      member.role = isReduce(instr) ? Role::Reduction : full ? Role::Full : Role::Row;
      for (const Operand& input : instr.inputs()) {
        // A result may take the place of an operand, so only what was computed before counts.
        const int producer = memberOf(input.region);
        member.from.push_back(producer);
        if (producer < 0) continue;
        const Member& from = members_[static_cast<size_t>(producer)];
        member.stage = std::max(member.stage, from.stage + (from.role == Role::Reduction ? 1 : 0));
      }
      stages_ = std::max(stages_, member.stage + (member.role == Role::Row ? 0 : 1));
      byResult_[member.result] = static_cast<int>(members_.size());
      members_.push_back(std::move(member));
    }
    if (!hasRows_) stages_ = 1;
  }

  int access(Access wanted) {
    const auto it = std::find(accesses_.begin(), accesses_.end(), wanted);
    if (it != accesses_.end()) return static_cast<int>(it - accesses_.begin());
    accesses_.push_back(std::move(wanted));
    return static_cast<int>(accesses_.size()) - 1;
  }

  int slotOf(RegionId region) const {
    const auto it = std::find(addresses_.begin(), addresses_.end(), region);
    return it == addresses_.end() ? -1 : static_cast<int>(it - addresses_.begin());
  }

  // Steps over the group's axes of a tensor read as if it had the member's shape. A row value's shape lacks the
  // trailing axes, or has them as 1.
  std::vector<int64_t> stepsOf(const Shape& tensor, const Shape& memberShape) const {
    if (!hasRows_) return broadcastStrides(tensor, *shape_);
    std::vector<int64_t> steps = broadcastStrides(tensor, memberShape);
    steps.resize(static_cast<size_t>(shape_->rank()), 0);
    return steps;
  }

  void findAccesses() {
    for (Member& member : members_) {
      const Shape& own = member.role == Role::Reduction ? typeOf(member.instr->inputs()[0].region).shape()
                                                        : typeOf(member.result).shape();
      const std::span<const Operand> inputs = member.instr->inputs();
      for (size_t i = 0; i < inputs.size(); ++i) {
        const RegionId region = inputs[i].region;
        const bool inside = member.from[i] >= 0;
        member.reads.push_back(
            inside ? -1 : access({.slot = slotOf(region), .steps = stepsOf(typeOf(region).shape(), own)}));
      }
      addTables(member, own);
      if (slotOf(member.result) >= 0) {
        const Shape& result = typeOf(member.result).shape();
        member.write = access({.slot = slotOf(member.result), .steps = stepsOf(result, result)});
      }
    }
    Nest rows, inner;
    const auto cut = static_cast<size_t>(rowRank_);
    const std::vector<int64_t>& dims = shape_->dims();
    for (const Access& a : accesses_) {
      rows.steps.emplace_back(a.steps.begin(), a.steps.begin() + static_cast<ptrdiff_t>(cut));
      inner.steps.emplace_back(a.steps.begin() + static_cast<ptrdiff_t>(cut), a.steps.end());
    }
    rows.extents.assign(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(cut));
    inner.extents.assign(dims.begin() + static_cast<ptrdiff_t>(cut), dims.end());
    rows_ = joined(rows);
    inner_ = joined(inner);
    if (!hasRows_ && !rows_.extents.empty()) {
      inner_.extents = {rows_.extents.back()};
      for (size_t k = 0; k < accesses_.size(); ++k) {
        inner_.steps[k] = {rows_.steps[k].back()};
        rows_.steps[k].pop_back();
      }
      rows_.extents.pop_back();
    }
    if (inner_.extents.empty()) {
      inner_.extents = {1};
      for (auto& steps : inner_.steps) steps = {0};
    }
  }

  // Scales and offsets along an axis are tables in the code.
  void addTables(Member& member, const Shape& own) {
    const std::string_view name = member.instr->attrs.op().name;
    if (name != "Quantize" && name != "Dequantize") return;
    const Type& quantized = typeOf(name == "Quantize" ? member.result : member.instr->inputs()[0].region);
    if (quantized.quant().axis < 0) return;
    std::vector<int64_t> steps(static_cast<size_t>(shape_->rank()), 0);
    steps[static_cast<size_t>(quantized.quant().axis)] = 1;
    AGLOW_CHECK(own == *shape_, "quantization by axis stands on whole tensors");
    const std::vector<int32_t>& offsets = quantized.quant().offsets;
    const std::vector<float> both[2] = {quantized.quant().scales, {offsets.begin(), offsets.end()}};
    for (const std::vector<float>& values : both) {
      llvm::Constant* data = llvm::ConstantDataArray::get(context_.module.getContext(), values);
      auto* table = new llvm::GlobalVariable(context_.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                             data, "table");
      tables_[{member.result, &values == &both[0]}] = access({.table = table, .steps = steps});
    }
  }

  // ---------------------------------------------------------------- loops

  int64_t emitRows() {
    const int64_t rows = product(rows_.extents);
    const int64_t length = product(inner_.extents);
    const bool cuttable = !hasRows_ && length > 2 * kChunk;
    const int64_t chunks = cuttable ? (length + kChunk - 1) / kChunk : 1;
    if (rows == 0 || (length == 0 && !hasRows_)) return 0;
    makeSlots(length);
    emitLoop(b, function_->getArg(1), function_->getArg(2), 1, [&](llvm::Value* unit) {
      llvm::Value* row = unit;
      llvm::Value* begin = b.getInt64(0);
      llvm::Value* end = b.getInt64(static_cast<uint64_t>(inner_.extents.back()));
      if (cuttable) {
        llvm::Value* count = b.getInt64(static_cast<uint64_t>(chunks));
        row = b.CreateUDiv(unit, count);
        begin = b.CreateMul(b.CreateURem(unit, count), b.getInt64(kChunk));
        end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, b.CreateAdd(begin, b.getInt64(kChunk)));
      }
      setRow(row);
      for (int stage = 0; stage < stages_; ++stage) {
        evaluateRowValues(stage);
        if (stageHasWork(stage)) emitStage(stage, begin, end);
      }
      evaluateRowValues(stages_);
    });
    return rows * chunks;
  }

  // Memory on the stack belongs to the function's entry.
  void makeSlots(int64_t length) {
    for (Member& member : members_) {
      LaneBuilder one(b, context_.library, context_.target, 1);
      if (member.role == Role::Full && neededLater(member) && member.write < 0)
        member.row = b.CreateAlloca(
            llvm::ArrayType::get(one.storedScalar(typeOf(member.result).kind()), static_cast<uint64_t>(length)));
      if (member.row != nullptr) member.row->setAlignment(llvm::Align(64));
      if (member.role != Role::Reduction) continue;
      for (const int width : widths())
        member.accumulators[width] =
            b.CreateAlloca(LaneBuilder(b, context_.library, context_.target, width).domainType(sumDomain(member)));
    }
  }

  bool neededLater(const Member& value) const {
    return std::any_of(members_.begin(), members_.end(), [&](const Member& user) {
      const auto self = static_cast<int>(&value - members_.data());
      return user.stage > value.stage && std::find(user.from.begin(), user.from.end(), self) != user.from.end();
    });
  }

  std::vector<int> widths() const {
    const int lanes = context_.target.shape().lanes;
    if (lanes > 4) return {lanes, 4, 1};
    return {lanes, 1};
  }

  // Offsets of each access for a row, from the row's number.
  void setRow(llvm::Value* row) {
    std::vector<llvm::Value*> index(rows_.extents.size());
    for (size_t axis = rows_.extents.size(); axis-- > 0;) {
      llvm::Value* extent = b.getInt64(static_cast<uint64_t>(rows_.extents[axis]));
      index[axis] = axis == 0 ? row : b.CreateURem(row, extent);
      row = axis == 0 ? row : b.CreateUDiv(row, extent);
    }
    rowOffsets_.assign(accesses_.size(), b.getInt64(0));
    for (size_t k = 0; k < accesses_.size(); ++k)
      for (size_t axis = 0; axis < index.size(); ++axis)
        if (rows_.steps[k][axis] != 0)
          rowOffsets_[k] = b.CreateAdd(rowOffsets_[k], b.CreateMul(index[axis], step(rows_.steps[k][axis])));
  }

  llvm::Value* step(int64_t elements) { return b.getInt64(static_cast<uint64_t>(elements)); }

  bool stageHasWork(int stage) const {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Member& m) { return m.role != Role::Row && m.stage == stage; });
  }

  void emitStage(int stage, llvm::Value* begin, llvm::Value* end) {
    for (Member& member : members_)
      if (member.role == Role::Reduction && member.stage == stage) startReduction(member);
    emitAxes(0, rowOffsets_, b.getInt64(0), begin, end, stage);
    for (Member& member : members_)
      if (member.role == Role::Reduction && member.stage == stage) finishReduction(member);
  }

  // The inner axes one in the other; the last one in vectors, then in narrower ones.
  void emitAxes(size_t axis, const std::vector<llvm::Value*>& offsets, llvm::Value* position, llvm::Value* begin,
                llvm::Value* end, int stage) {
    const auto moved = [&](llvm::Value* i) {
      std::vector<llvm::Value*> next = offsets;
      for (size_t k = 0; k < next.size(); ++k)
        if (inner_.steps[k][axis] != 0) next[k] = b.CreateAdd(next[k], b.CreateMul(i, step(inner_.steps[k][axis])));
      return next;
    };
    const int64_t extent = inner_.extents[axis];
    if (axis + 1 < inner_.extents.size()) {
      emitLoop(b, b.getInt64(0), step(extent), 1, [&](llvm::Value* i) {
        llvm::Value* next = b.CreateMul(b.CreateAdd(position, i), step(inner_.extents[axis + 1]));
        emitAxes(axis + 1, moved(i), next, begin, end, stage);
      });
      return;
    }
    llvm::Value* i = begin;
    for (const int width : widths())
      if (extent >= width)
        i = emitLoop(b, i, end, width,
                     [&](llvm::Value* at) { emitElements(width, moved(at), b.CreateAdd(position, at), stage); });
  }

  // ---------------------------------------------------------------- values

  void emitElements(int width, const std::vector<llvm::Value*>& offsets, llvm::Value* position, int stage) {
    InstrEmitter emitter(context_, b, width);
    std::map<int, llvm::Value*> loaded;
    std::map<int, llvm::Value*> computed;
    std::vector<const Member*> written;
    const auto load = [&](int a, ElemKind kind) {
      llvm::Value*& value = loaded[a];
      const bool same = inner_.steps[static_cast<size_t>(a)].back() == 0;
      const Access& access = accesses_[static_cast<size_t>(a)];
      llvm::Value* base = access.slot >= 0 ? pointers_[static_cast<size_t>(access.slot)] : access.table;
      if (value == nullptr) value = emitter.lanes().load(kind, base, offsets[static_cast<size_t>(a)], same);
      return value;
    };
    const auto operandOf = [&](const Member& member, int i) -> llvm::Value* {
      const RegionId region = member.instr->inputs()[static_cast<size_t>(i)].region;
      if (const int a = member.reads[static_cast<size_t>(i)]; a >= 0) return load(a, typeOf(region).kind());
      const int producer = member.from[static_cast<size_t>(i)];
      const Member& from = members_[static_cast<size_t>(producer)];
      if (from.scalar != nullptr) return emitter.lanes().splat(from.scalar);
      if (llvm::Value* value = computed[producer]) return value;
      AGLOW_CHECK(from.stage < stage, "a group's value is used before it is computed");
      if (from.row != nullptr) return emitter.lanes().load(typeOf(region).kind(), from.row, position);
      return load(from.write, typeOf(region).kind());
    };
    for (size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      if (member.stage != stage || member.role == Role::Row) continue;
      if (member.role == Role::Reduction) {
        accumulate(member, emitter.lanes(), operandOf(member, 0));
        continue;
      }
      const auto operand = [&](int i) { return operandOf(member, i); };
      const auto table = [&](const std::vector<float>& values, const Type& quantized) {
        const bool scales = &values == &quantized.quant().scales;
        return load(tables_.at({member.result, scales}), ElemKind::Float32);
      };
      computed[static_cast<int>(m)] = emitter.emit(*member.instr, operand, table);
      written.push_back(&member);
    }
    // Stores stand behind all loads, because a result may take the place of an operand.
    for (const Member* member : written) {
      llvm::Value* value = computed[static_cast<int>(member - members_.data())];
      const ElemKind kind = typeOf(member->result).kind();
      if (member->row != nullptr) emitter.lanes().store(kind, value, member->row, position);
      if (member->write < 0) continue;
      const Access& access = accesses_[static_cast<size_t>(member->write)];
      emitter.lanes().store(kind, value, pointers_[static_cast<size_t>(access.slot)],
                            offsets[static_cast<size_t>(member->write)]);
    }
  }

  void evaluateRowValues(int stage) {
    InstrEmitter emitter(context_, b, 1);
    for (Member& member : members_) {
      if (member.role != Role::Row || member.stage != stage || member.scalar != nullptr) continue;
      const auto operand = [&](int i) -> llvm::Value* {
        const RegionId region = member.instr->inputs()[static_cast<size_t>(i)].region;
        const int a = member.reads[static_cast<size_t>(i)];
        if (a < 0) return members_[static_cast<size_t>(member.from[static_cast<size_t>(i)])].scalar;
        llvm::Value* base = pointers_[static_cast<size_t>(accesses_[static_cast<size_t>(a)].slot)];
        return emitter.lanes().load(typeOf(region).kind(), base, rowOffsets_[static_cast<size_t>(a)]);
      };
      member.scalar = emitter.emit(*member.instr, operand, [](const std::vector<float>&, const Type&) -> llvm::Value* {
        AGLOW_CHECK(false, "quantization by axis stands on whole tensors");
      });
      storeScalar(member);
    }
  }

  void storeScalar(const Member& member) {
    if (member.write < 0) return;
    const Access& access = accesses_[static_cast<size_t>(member.write)];
    LaneBuilder one(b, context_.library, context_.target, 1);
    one.store(typeOf(member.result).kind(), member.scalar, pointers_[static_cast<size_t>(access.slot)],
              rowOffsets_[static_cast<size_t>(member.write)]);
  }

  // ---------------------------------------------------------------- reductions

  // Sums and products are taken in 64 bits: a mean sees what would wrap or overflow, and long rows lose nothing.
  LaneDomain sumDomain(const Member& member) const {
    LaneDomain domain = domainOfKind(typeOf(member.result).kind());
    const std::string& kind = member.instr->attrs.word("kind");
    if (kind != "max" && kind != "min") domain.type = domain.real() ? LaneDomain::Type::F64 : LaneDomain::Type::I64;
    return domain;
  }

  // Of sums, products and real extrema.
  double neutral(const Member& member) const {
    const std::string& kind = member.instr->attrs.word("kind");
    if (kind == "prod") return 1;
    if (kind != "max" && kind != "min") return 0;
    return kind == "max" ? -HUGE_VAL : HUGE_VAL;
  }

  // The ends of an integer kind do not all fit into a double.
  llvm::Value* startValue(const Member& member, LaneBuilder& lanes) const {
    const std::string& kind = member.instr->attrs.word("kind");
    const ElemKind elem = typeOf(member.result).kind();
    const LaneDomain domain = sumDomain(member);
    if (domain.real() || (kind != "max" && kind != "min")) return lanes.constant(domain, neutral(member));
    const int bits = elemInfo(elem).bits;
    uint64_t value = 0;
    if (kind == "max")
      value = domain.isSigned ? ~uint64_t{0} << (bits - 1) : 0;
    else
      value = elem == ElemKind::Bool ? 1
              : domain.isSigned      ? ~(~uint64_t{0} << (bits - 1))
                                     : ~uint64_t{0} >> (64 - bits);
    if (domain.type == LaneDomain::Type::I32) value = static_cast<uint32_t>(value);
    return llvm::ConstantInt::get(lanes.domainType(domain), value);
  }

  llvm::Value* combine(const Member& member, LaneBuilder& lanes, llvm::Value* x, llvm::Value* y) {
    const std::string& kind = member.instr->attrs.word("kind");
    const LaneDomain domain = sumDomain(member);
    if (kind == "max") return lanes.larger(x, y, domain);
    if (kind == "min") return lanes.smaller(x, y, domain);
    if (kind == "prod") return domain.real() ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    return domain.real() ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
  }

  void startReduction(Member& member) {
    for (const auto& [width, slot] : member.accumulators) {
      LaneBuilder lanes(b, context_.library, context_.target, width);
      b.CreateStore(startValue(member, lanes), slot);
    }
  }

  void accumulate(const Member& member, LaneBuilder& lanes, llvm::Value* stored) {
    llvm::AllocaInst* slot = member.accumulators.at(lanes.width());
    const ElemKind kind = typeOf(member.instr->inputs()[0].region).kind();
    const LaneDomain domain = sumDomain(member);
    llvm::Value* value = lanes.number(lanes.widen(kind, stored, domain), domain);
    b.CreateStore(combine(member, lanes, b.CreateLoad(slot->getAllocatedType(), slot), value), slot);
  }

  // Halves until one lane is left: the same tree whatever the row's length.
  void finishReduction(Member& member) {
    LaneBuilder one(b, context_.library, context_.target, 1);
    llvm::Value* total = nullptr;
    for (auto it = member.accumulators.rbegin(); it != member.accumulators.rend(); ++it) {
      llvm::Value* value = b.CreateLoad(it->second->getAllocatedType(), it->second);
      for (int width = it->first; width > 1; width /= 2) {
        std::vector<int> low, high;
        for (int i = 0; i < width / 2; ++i) {
          low.push_back(i);
          high.push_back(i + width / 2);
        }
        llvm::Value* x = width == 2 ? b.CreateExtractElement(value, uint64_t{0}) : b.CreateShuffleVector(value, low);
        llvm::Value* y = width == 2 ? b.CreateExtractElement(value, uint64_t{1}) : b.CreateShuffleVector(value, high);
        LaneBuilder half(b, context_.library, context_.target, width / 2);
        value = combine(member, half, x, y);
      }
      total = total == nullptr ? value : combine(member, one, total, value);
    }
    const LaneDomain domain = sumDomain(member);
    if (member.instr->attrs.word("kind") == "mean") {
      const auto count = static_cast<double>(product(inner_.extents));
      llvm::Value* divisor = one.constant(domain, count);
      if (domain.real())
        total = b.CreateFDiv(total, divisor);
      else
        total = count == 0 ? divisor : domain.isSigned ? b.CreateSDiv(total, divisor) : b.CreateUDiv(total, divisor);
    }
    member.scalar = one.narrow(typeOf(member.result).kind(), {total}, domain);
    storeScalar(member);
  }

  const EmitContext& context_;
  const Program& program_;
  std::span<const Instr> body_;
  llvm::IRBuilder<> b;
  std::vector<RegionId> addresses_;
  const Shape* shape_ = nullptr;
  bool hasRows_ = false;
  int rowRank_ = 0;
  int stages_ = 1;
  std::vector<Member> members_;
  std::map<RegionId, int> byResult_;
  std::vector<Access> accesses_;
  std::map<std::pair<RegionId, bool>, int> tables_;  // of quantization: result, whether scales
  Nest rows_, inner_;
  llvm::Function* function_ = nullptr;
  std::vector<llvm::Value*> pointers_;
  std::vector<llvm::Value*> rowOffsets_;
};

}  // namespace

Steps emitGroup(const EmitContext& context, std::span<const Instr> body, std::span<const Operand> operands,
                const std::string& name) {
  return GroupEmitter(context, body, operands).run(name);
}

}  // namespace aglow::codegen
