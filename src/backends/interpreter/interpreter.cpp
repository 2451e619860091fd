// Execution, one instruction after the other. Inputs and constants are read where they lie; results are computed in the
// arena, or straight in the output's tensor.
#include "backends/interpreter/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "reference/reference.h"
#include "support/quote.h"
#include "support/sizes.h"

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

}  // namespace

bool InterpreterOptions::poisonByDefault() {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(AGLOW_CLANG_ASAN)
  return true;
#else
  return false;
#endif
}

InterpreterExecutable::InterpreterExecutable(Program program, const InterpreterOptions& options,
                                             const LocalPlaces& places)
    : program_(std::move(program)),
      options_(options),
      inputs_(bindingsOf(program_, program_.inputs())),
      outputs_(bindingsOf(program_, program_.outputs())),
      extents_(program_.extents()),
      arena_(Type(ElemKind::UInt8, Shape{program_.arenaBytes})),
      locals_(Type(ElemKind::UInt8, Shape{places.bytes})),
      owned_(program_.regions.size()),
      bases_(program_.regions.size()) {
  for (size_t i = 0; i < program_.regions.size(); ++i) {
    const Region& region = program_.regions[i];
    if (const auto* allocated = region.as<Allocated>()) {
      bases_[i] = arena_.mutableData() + allocated->offset;
    } else if (region.as<Local>() != nullptr) {
      bases_[i] = locals_.mutableData() + places.offsets[i];
    } else if (region.declared() && region.as<PlaceholderInit>() == nullptr) {
      owned_[i] = initialValue(region);
      bases_[i] = owned_[i].ref().data;
    }
  }
}

// Locals of one instruction lie one behind the other; those of the next one take the same bytes.
Result<InterpreterExecutable::LocalPlaces> InterpreterExecutable::placeLocals(const Program& program) {
  LocalPlaces places{.offsets = std::vector<int64_t>(program.regions.size()), .bytes = 0};
  for (const Instr& instr : program.instrs) {
    int64_t next = 0;
    for (const Instr& step : instr.body)
      for (const Operand& result : step.results()) {
        if (program[result.region].as<Local>() == nullptr) continue;
        places.offsets[static_cast<size_t>(result.region)] = next;
        next += alignUp(program[result.region].type.bytes(), Program::kAlignment);
        if (next > kMostLocalBytes)
          return Error{.code = Code::TooLarge, .message = "the values inside of an instruction need too much memory"};
      }
    places.bytes = std::max(places.bytes, next);
  }
  return places;
}

Result<InterpreterExecutable> InterpreterExecutable::create(Program program, const InterpreterOptions& options) {
  AGLOW_CHECK(program.placed(), "the interpreter runs placed programs");
  AGLOW_TRY(const LocalPlaces places, placeLocals(program));
  AGLOW_OK(checkMemory(program, options, places.bytes));
  const int64_t bytes = program.arenaBytes + places.bytes;
  try {
    return InterpreterExecutable(std::move(program), options, places);
  } catch (const std::bad_alloc&) {
    return outOfMemory(bytes);
  }
}

ExecutableFacts InterpreterExecutable::facts() const {
  return {.target = "host", .threads = 1, .arenaBytes = program_.arenaBytes, .weightsBytes = program_.constantBytes()};
}

void InterpreterExecutable::bind(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) {
  size_t in = 0, out = 0;
  for (size_t i = 0; i < program_.regions.size(); ++i) {
    const auto* placeholder = program_.regions[i].as<PlaceholderInit>();
    if (placeholder == nullptr) continue;
    if (!writes(placeholder->access)) {
      bases_[i] = const_cast<std::byte*>(inputs[in++]);  // no instruction writes it
      continue;
    }
    bases_[i] = outputs[out++];
    const auto bytes = static_cast<size_t>(program_.regions[i].type.bytes());
    if (bytes == 0)
      in += reads(placeholder->access) ? 1 : 0;
    else if (reads(placeholder->access))
      std::memmove(bases_[i], inputs[in++], bytes);
    else if (options_.poison)
      std::memset(bases_[i], kPoison, bytes);
  }
}

Status InterpreterExecutable::execute(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                                      RunObserver* observer) {
  try {
    bind(inputs, outputs);
    if (options_.poison) std::memset(arena_.mutableData(), kPoison, static_cast<size_t>(arena_.bytes()));
    for (size_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      if (observer != nullptr) observer->begin(i, 0);
      Status status = execute(instr);
      if (observer != nullptr) observer->end(i, 0);
      if (!status.ok())
        return std::move(status).error().at(fmt::format("node {} ({})", quoted(instr.origin), instrName(instr)));
    }
    return {};
  } catch (const std::bad_alloc&) {
    return outOfMemory(program_.declaredBytes());
  }
}

TensorRef InterpreterExecutable::ref(RegionId id) const {
  if (id == kNoRegion) return {};
  const Extent& extent = extents_[static_cast<size_t>(id)];
  return {&program_[id].type, bases_[static_cast<size_t>(extent.root)] + extent.begin};
}

bool InterpreterExecutable::skipped(const Instr& instr) const {
  if (instr.predicate == kNoRegion) return false;
  const TensorRef predicate = ref(instr.predicate);
  const auto* rows = predicate.as<uint8_t>();
  return std::all_of(rows, rows + predicate.type->elements(), [](uint8_t row) { return row == 0; });
}

void InterpreterExecutable::fillPoison(RegionId id) {
  std::memset(ref(id).data, kPoison, static_cast<size_t>(program_[id].type.bytes()));
}

Status InterpreterExecutable::execute(const Instr& instr) {
  switch (instr.kind) {
    case Instr::Kind::Alloc:
    case Instr::Kind::Dealloc:
      if (options_.poison) fillPoison(instr.operands[0].region);
      return {};
    case Instr::Kind::TensorView:
    case Instr::Kind::CopyWait:
      return {};
    case Instr::Kind::Copy:
    case Instr::Kind::CopyStart:
      if (!skipped(instr)) {
        const TensorRef to = ref(instr.operands[0].region);
        std::memmove(to.data, ref(instr.operands[1].region).data, static_cast<size_t>(to.type->bytes()));
      }
      return {};
    case Instr::Kind::Compute:
      return skipped(instr) ? Status() : compute(instr);
    case Instr::Kind::Fused:
      if (!skipped(instr)) {
        if (options_.poison) std::memset(locals_.mutableData(), kPoison, static_cast<size_t>(locals_.bytes()));
        for (const Instr& step : instr.body) AGLOW_OK(compute(step));
      }
      return {};
  }
  return {};
}

Status InterpreterExecutable::compute(const Instr& instr) {
  in_.clear();
  out_.clear();
  for (const Operand& operand : instr.inputs()) in_.push_back(ref(operand.region));
  for (const Operand& operand : instr.results()) out_.push_back(ref(operand.region));
  return runReference({.attrs = instr.attrs, .in = in_, .out = out_});
}

Decision Interpreter::supports(const Node& node) const {
  if (node.def().kind != OpKind::Composite) return Decision::yes();
  return Decision::no(fmt::format("{} is composed of others", node.def().name));
}

Result<std::unique_ptr<Executable>> Interpreter::compile(Program program, const BackendOptions& options) const {
  InterpreterOptions interpreterOptions;
  interpreterOptions.memoryLimit = options.memoryLimit;
  AGLOW_TRY(InterpreterExecutable executable, InterpreterExecutable::create(std::move(program), interpreterOptions));
  return std::unique_ptr<Executable>(std::make_unique<InterpreterExecutable>(std::move(executable)));
}

}  // namespace aglow
