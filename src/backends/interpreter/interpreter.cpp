// Execution, one instruction after the other. Inputs and constants are read where they lie; results are computed in the
// arena, or straight in the output's tensor.
#include "backends/interpreter/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "codegen/nest/build.h"
#include "codegen/nest/evaluate.h"
#include "codegen/nest/kinds.h"
#include "codegen/nest/verifier.h"
#include "graph/rows.h"
#include "inst/fused.h"
#include "inst/rows.h"
#include "reference/reference.h"
#include "support/quote.h"
#include "support/sizes.h"
#include "support/stop.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AGLOW_CLANG_ASAN
#endif
#endif

namespace aglow {

namespace {

constexpr int kPoison = 0xFF;
// Below this, sums with the arena do not overflow.
constexpr int64_t kMostLocalBytes = int64_t{1} << 56;

Error outOfMemory(int64_t bytes) {
  return {.code = Code::OutOfMemory, .message = fmt::format("{} bytes cannot be allocated", bytes)};
}

bool readsByRow(const Program& program, const Instr& step, size_t input) {
  std::vector<const Type*> in;
  for (const Operand& operand : step.inputs())
    in.push_back(operand.region == kNoRegion ? nullptr : &program[operand.region].type);
  return readsByRow(step.attrs, in, program[step.results()[0].region].type, input);
}

// Whether all steps of an instruction under a predicate for rows can be done for some of them alone: their attributes
// do not speak of extents, and all that they compute has these rows.
bool goesByRow(const Program& program, const Instr& instr) {
  const int64_t rows = predicateRows(program, instr);
  if (rows == 0) return false;
  const std::span<const Instr> body = bodyOf(instr);
  return std::all_of(body.begin(), body.end(), [&](const Instr& step) {
    const Type& type = program[step.results()[0].region].type;
    return (step.attrs.op().kind == OpKind::Elementwise || opOf(step.attrs.op()) == Op::MatMul) &&
           !isQuantized(type.kind()) && type.rank() > 0 && type.dim(0) == rows;
  });
}

std::optional<nest::Nest> verifiedNest(const Program& program, const Instr& instr) {
  std::optional<nest::Nest> nest = nest::nestIn(program, instr);
  const Status valid = nest ? nest::verify(*nest) : Status();
  AGLOW_CHECK(valid.ok(), valid.error().text());
  return nest;
}

}  // namespace

bool InterpreterOptions::poisonByDefault() {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(AGLOW_CLANG_ASAN)
  return true;
#else
  return false;
#endif
}

InterpreterExecutable::InterpreterExecutable(std::vector<Program> programs, const InterpreterOptions& options,
                                             std::vector<LocalPlaces> places, int64_t localBytes)
    : Executable(programs, runLimits(programs, options, localBytes)),
      options_(options),
      arenaBytes_(aglow::arenaBytes(programs)),
      localBytes_(localBytes) {
  for (const Region* region : sharedRegions(programs))
    if (region->as<ConstantInit>() != nullptr) weightsBytes_ += region->type.bytes();
  for (size_t p = 0; p < programs.size(); ++p) {
    Loaded& loaded = programs_.emplace_back();
    loaded.extents = programs[p].extents();
    loaded.locals = std::move(places[p]);
    loaded.program = std::move(programs[p]);
    for (const Instr& instr : loaded.program.instrs)
      loaded.nests.push_back(options_.nests ? verifiedNest(loaded.program, instr) : std::nullopt);
  }
  observed_ = std::make_unique<std::atomic<Context*>>(static_cast<Context*>(&makeFirstContext()));
}

std::unique_ptr<RunContext> InterpreterExecutable::makeContext() {
  auto context = std::make_unique<Context>();
  context->arena = Tensor(Type(ElemKind::UInt8, Shape{arenaBytes_}));
  context->locals = Tensor(Type(ElemKind::UInt8, Shape{localBytes_}));
  for (const Loaded& loaded : programs_) {
    const std::vector<Region>& regions = loaded.program.regions;
    std::vector<std::byte*>& bases = context->bases.emplace_back(regions.size());
    for (size_t i = 0; i < regions.size(); ++i) {
      if (const auto* allocated = regions[i].as<Allocated>())
        bases[i] = context->arena.mutableData() + allocated->offset;
      else if (regions[i].as<Local>() != nullptr)
        bases[i] = context->locals.mutableData() + loaded.locals.offsets[i];
      else if (regions[i].isState())
        bases[i] = state().address(regions[i].name);
      else if (const auto* constant = regions[i].as<ConstantInit>())
        bases[i] = constant->bytes.ref().data;
    }
  }
  return context;
}

// Locals of one instruction lie one after the other; those of the next one take the same bytes.
Result<InterpreterExecutable::LocalPlaces> InterpreterExecutable::placeLocals(const Program& program) {
  LocalPlaces places{.offsets = std::vector<int64_t>(program.regions.size()), .bytes = 0};
  for (const Instr& instr : program.instrs) {
    int64_t next = 0;
    for (const Instr& step : instr.body)
      for (const Operand& result : step.results()) {
        if (result.region == kNoRegion || program[result.region].as<Local>() == nullptr) continue;
        places.offsets[static_cast<size_t>(result.region)] = next;
        next += alignUp(program[result.region].type.bytes(), Program::kAlignment);
        if (next > kMostLocalBytes)
          return Error{.code = Code::TooLarge, .message = "the values inside of an instruction need too much memory"};
      }
    places.bytes = std::max(places.bytes, next);
  }
  return places;
}

Result<InterpreterExecutable> InterpreterExecutable::create(std::vector<Program> programs,
                                                            const InterpreterOptions& options) {
  std::vector<LocalPlaces> places;
  int64_t localBytes = 0;
  for (const Program& program : programs) {
    AGLOW_CHECK(program.placed(), "the interpreter runs placed programs");
    AGLOW_TRY(LocalPlaces one, placeLocals(program));
    localBytes = std::max(localBytes, one.bytes);
    places.push_back(std::move(one));
  }
  AGLOW_OK(checkMemory(programs, options, localBytes));
  const int64_t bytes = arenaBytes(programs) + localBytes;
  try {
    return InterpreterExecutable(std::move(programs), options, std::move(places), localBytes);
  } catch (const std::bad_alloc&) {
    return outOfMemory(bytes);
  }
}

Result<InterpreterExecutable> InterpreterExecutable::create(Program program, const InterpreterOptions& options) {
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  return create(std::move(programs), options);
}

ExecutableFacts InterpreterExecutable::facts() const {
  return {.target = "host",
          .threads = 1,
          .contexts = contexts(),
          .arenaBytes = arenaBytes_,
          .weightsBytes = weightsBytes_,
          .stateBytes = state().bytes()};
}

void InterpreterExecutable::bind(const Run& run, std::span<const std::byte* const> inputs,
                                 std::span<std::byte* const> outputs) const {
  size_t in = 0, out = 0;
  const std::vector<Region>& regions = run.program().regions;
  for (size_t i = 0; i < regions.size(); ++i) {
    const auto* placeholder = regions[i].as<PlaceholderInit>();
    if (placeholder == nullptr) continue;
    std::byte*& base = run.bases[i];
    if (!writes(placeholder->access)) {
      base = const_cast<std::byte*>(inputs[in++]);  // no instruction writes it
      continue;
    }
    base = outputs[out++];
    const auto bytes = static_cast<size_t>(regions[i].type.bytes());
    if (bytes == 0)
      in += reads(placeholder->access) ? 1 : 0;
    else if (reads(placeholder->access))
      std::memmove(base, inputs[in++], bytes);
    else if (options_.poison)
      std::memset(base, kPoison, bytes);
  }
}

Status InterpreterExecutable::execute(RunContext& given, size_t function, std::span<const std::byte* const> inputs,
                                      std::span<std::byte* const> outputs, RunObserver* observer) {
  try {
    auto& context = static_cast<Context&>(given);
    Run run{.loaded = programs_[function], .context = context, .bases = context.bases[function]};
    if (observer != nullptr) *observed_ = &context;
    bind(run, inputs, outputs);
    if (options_.poison) std::memset(context.arena.mutableData(), kPoison, static_cast<size_t>(arenaBytes_));
    std::optional<DeviceClock> clock;
    if (options_.clock) clock.emplace(run.program(), *options_.clock);
    for (size_t i = 0; i < run.program().instrs.size(); ++i) {
      const Instr& instr = run.program().instrs[i];
      AGLOW_OK(StopScope::check());
      if (observer != nullptr) observer->begin(i);
      if (clock) clock->run(i, skipped(run, instr));
      Status status = execute(run, i);
      if (observer != nullptr) observer->end(i);
      if (!status.ok())
        return std::move(status).error().at(fmt::format("node {} ({})", quoted(instr.origin), instrName(instr)));
    }
    if (clock) context.timeline = clock->timeline();
    return {};
  } catch (const std::bad_alloc&) {
    return outOfMemory(arenaBytes_);
  }
}

TensorRef InterpreterExecutable::Run::ref(RegionId id) const {
  if (id == kNoRegion) return {};
  const Extent& extent = loaded.extents[static_cast<size_t>(id)];
  return {&program()[id].type, bases[static_cast<size_t>(extent.root)] + extent.begin};
}

TensorRef InterpreterExecutable::ref(RegionId id, size_t function) const {
  Context& context = *observed_->load();
  return Run{.loaded = programs_[function], .context = context, .bases = context.bases[function]}.ref(id);
}

bool InterpreterExecutable::skipped(const Run& run, const Instr& instr) {
  if (instr.predicate == kNoRegion) return false;
  const TensorRef predicate = run.ref(instr.predicate);
  const auto* rows = predicate.as<uint8_t>();
  return std::all_of(rows, rows + predicate.type->elements(), [](uint8_t row) { return row == 0; });
}

void InterpreterExecutable::copy(const Run& run, const Instr& instr) {
  const TensorRef to = run.ref(instr.operands[0].region);
  std::memmove(to.data, run.ref(instr.operands[1].region).data, static_cast<size_t>(to.type->bytes()));
}

void InterpreterExecutable::fillPoison(const Run& run, RegionId id) {
  const TensorRef region = run.ref(id);
  std::memset(region.data, kPoison, static_cast<size_t>(region.type->bytes()));
}

Status InterpreterExecutable::execute(Run& run, size_t number) const {
  const Instr& instr = run.program().instrs[number];
  switch (instr.kind) {
    case Instr::Kind::Alloc:
    case Instr::Kind::Dealloc:
      if (options_.poison) fillPoison(run, instr.operands[0].region);
      return {};
    case Instr::Kind::TensorView:
      return {};
    case Instr::Kind::Copy:
      if (!skipped(run, instr)) copy(run, instr);
      return {};
    // As late as can be, so that whoever reads it before the wait finds something else.
    case Instr::Kind::CopyStart:
      if (skipped(run, instr)) return {};
      run.travelling.insert(instr.token);
      if (options_.poison) fillPoison(run, instr.operands[0].region);
      return {};
    case Instr::Kind::CopyWait:
      if (run.travelling.erase(instr.token) > 0) copy(run, instr);
      return {};
    case Instr::Kind::Compute:
    case Instr::Kind::Fused:
      if (!skipped(run, instr)) {
        if (options_.poison && !instr.body.empty())
          std::memset(run.context.locals.mutableData(), kPoison, static_cast<size_t>(localBytes_));
        if (const auto& nest = run.loaded.nests[number]) return compute(run, instr, *nest);
        if (goesByRow(run.program(), instr)) return computeRows(run, instr);
        for (const Instr& step : bodyOf(instr)) AGLOW_OK(compute(run, step));
      }
      return {};
  }
  return {};
}

Status InterpreterExecutable::compute(Run& run, const Instr& instr) {
  run.in.clear();
  run.out.clear();
  for (const Operand& operand : instr.inputs()) run.in.push_back(run.ref(operand.region));
  for (const Operand& operand : instr.results()) run.out.push_back(run.ref(operand.region));
  return runReference({.attrs = instr.attrs, .in = run.in, .out = run.out});
}

// The rows that the predicate asks for, one after the other: those of operands that are read by row, and all of others.
Status InterpreterExecutable::computeRows(Run& run, const Instr& instr) {
  const TensorRef predicate = run.ref(instr.predicate);
  const auto* wanted = predicate.as<uint8_t>();
  for (const Instr& step : bodyOf(instr)) {
    std::vector<bool> byRow;
    std::vector<Type> types;  // of one row
    const auto add = [&](RegionId id, bool rows) {
      byRow.push_back(rows);
      std::vector<int64_t> dims = id == kNoRegion ? std::vector<int64_t>() : run.program()[id].type.shape().dims();
      if (rows) dims.front() = 1;
      types.push_back(id == kNoRegion ? Type() : run.program()[id].type.withShape(Shape(std::move(dims))));
    };
    for (const Operand& operand : step.results()) add(operand.region, true);
    for (size_t i = 0; i < step.inputs().size(); ++i) add(step.inputs()[i].region, readsByRow(run.program(), step, i));
    for (int64_t row = 0; row < predicate.type->elements(); ++row) {
      if (wanted[row] == 0) continue;
      run.in.clear();
      run.out.clear();
      size_t number = 0;
      const auto refOf = [&](const Operand& operand) -> TensorRef {
        const Type& type = types[number];
        const bool rows = byRow[number++];
        if (operand.region == kNoRegion) return {};
        const TensorRef all = run.ref(operand.region);
        return {&type, all.data + (rows ? row * type.bytes() : 0)};
      };
      for (const Operand& operand : step.results()) run.out.push_back(refOf(operand));
      for (const Operand& operand : step.inputs()) run.in.push_back(refOf(operand));
      AGLOW_OK(runReference({.attrs = step.attrs, .in = run.in, .out = run.out}));
    }
  }
  return {};
}

Status InterpreterExecutable::compute(Run& run, const Instr& instr, const nest::Nest& nest) {
  std::vector<std::byte*> addresses;
  for (const Operand& operand : instr.operands) addresses.push_back(run.ref(operand.region).data);
  if (nest::isNest(run.program(), instr)) {
    nest::evaluate(nest, addresses);
    return {};
  }
  const Instr& anchor = instr.body.front();
  AGLOW_OK(compute(run, anchor));
  const TensorRef result = run.ref(anchor.results()[0].region);
  const ElemKind kind = result.type->kind(), computed = nest::computedKind(kind);
  const int64_t elements = result.type->elements();
  std::vector<std::byte> given(static_cast<size_t>(elements * elemBytes(computed)));
  inDomain(domainOf(kind), [&](auto zero) {
    const std::vector<decltype(zero)> wide = widened<decltype(zero)>(result);
    narrow(computed, wide.data(), elements, given.data(), 0);
  });
  nest::evaluate(nest, addresses, given.data());
  return {};
}

static Decision interprets(const OpDef& op) {
  if (op.kind == OpKind::Derivative) return Decision::no(fmt::format("{} stands for other nodes", op.name));
  if (op.kind != OpKind::Composite) return Decision::yes();
  return Decision::no(fmt::format("{} is composed of others", op.name));
}

Decision Interpreter::supports(const Node& node) const { return interprets(node.def()); }

Result<std::optional<Plan>> Interpreter::plan(const Program&, const Instr& instr) const {
  for (const Instr& step : bodyOf(instr))
    if (const Decision taken = interprets(step.attrs.op()); !taken)
      return Error{.code = Code::UnsupportedFeature, .message = taken.reason()};
  return std::optional<Plan>();
}

Result<std::unique_ptr<Executable>> Interpreter::compile(std::vector<Program> programs,
                                                         const BackendOptions& options) const {
  InterpreterOptions interpreterOptions;
  static_cast<BackendOptions&>(interpreterOptions) = options;
  if (device_.travel != LatencyModel::Travel::Never) interpreterOptions.clock = device_;
  AGLOW_TRY(InterpreterExecutable executable, InterpreterExecutable::create(std::move(programs), interpreterOptions));
  return std::unique_ptr<Executable>(std::make_unique<InterpreterExecutable>(std::move(executable)));
}

}  // namespace aglow
