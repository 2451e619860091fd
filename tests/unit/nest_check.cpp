#include "nest_check.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "codegen/clike/c_text.h"
#include "codegen/nest/build.h"
#include "codegen/nest/evaluate.h"
#include "codegen/nest/kinds.h"
#include "codegen/nest/text.h"
#include "codegen/nest/verifier.h"
#include "inst/fused.h"
#include "support/process.h"
#include "support/temporary.h"

namespace aglow::testing_support {

namespace {

// One unit in the last place of a kind, relative to the value. Reductions and functions differ by a few.
double unitOf(ElemKind kind) {
  switch (kind) {
    case ElemKind::Float64:
      return 1e-14;
    case ElemKind::Float32:
      return 2e-6;
    case ElemKind::Float16:
      return 0x1p-10;
    case ElemKind::BFloat16:
      return 0x1p-7;
    default:
      return isFloat(kind) ? 0.25 : 0;
  }
}

// What differs, or nothing. Values of the nest's computed kinds may be rounded in another order, which a rounding to an
// integer turns into one step.
std::string difference(const TensorRef& expected, const std::byte* got, bool exact) {
  const TensorRef other{expected.type, const_cast<std::byte*>(got)};
  const std::vector<double> x = widened<double>(expected), y = widened<double>(other);
  const ElemKind kind = expected.type->kind();
  double scale = 0;
  for (const double v : x)
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  int64_t steps = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i] && std::signbit(x[i]) == std::signbit(y[i])) continue;
    if (!exact && std::isfinite(x[i]) && std::isfinite(y[i])) {
      if (std::abs(x[i] - y[i]) <= unitOf(kind) * std::max(std::abs(x[i]), 0.05 * scale)) continue;
      if (isQuantized(kind) && std::abs(x[i] - y[i]) <= 1 && ++steps * 1000 <= static_cast<int64_t>(x.size()) + 1000)
        continue;
    }
    return fmt::format("element {} of {}: {} instead of {}", i, expected.type->text(), y[i], x[i]);
  }
  return {};
}

}  // namespace

NestCheck::Counts& NestCheck::Counts::operator+=(const Counts& other) {
  loops += other.loops;
  reducing += other.reducing;
  epilogues += other.epilogues;
  differences.insert(differences.end(), other.differences.begin(), other.differences.end());
  return *this;
}

Result<std::unique_ptr<NestCheck>> NestCheck::create(const InterpreterExecutable& executable, const View& view,
                                                     bool exact) {
  std::unique_ptr<NestCheck> made(new NestCheck(executable, exact));
  const Program& program = executable.program();
  std::string source(codegen::cPrelude());
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    std::optional<nest::Nest> nest = nest::nestIn(program, instr);
    auto& entry = made->entries_.emplace_back();
    if (!nest) continue;
    const bool epilogue = !nest::isNest(program, instr);
    if (epilogue && view)
      if (const std::vector<int64_t> seen = view(instr); !seen.empty()) nest = nest::epilogueOf(program, instr, seen);
    AGLOW_OK(nest::verify(*nest));
    source += codegen::printC(*nest, fmt::format("nest_{}", i));
    std::string text = nest::print(*nest);
    entry = std::make_unique<Entry>(Entry{*std::move(nest), epilogue, std::move(text)});
  }
  AGLOW_OK(made->compile(source));
  return made;
}

NestCheck::~NestCheck() {
  if (library_ != nullptr) dlclose(library_);
}

Status NestCheck::compile(const std::string& source) {
  AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string from = folder.file("nests.c"), to = folder.file("nests.so"), log = folder.file("log");
  std::ofstream(from) << source;
  AGLOW_TRY(const int status, runProgram({"cc", "-std=c11", "-O1", "-Wall", "-Werror", "-Wno-unused-variable",
                                          "-ffp-contract=off", "-fPIC", "-shared", from, "-o", to, "-lm"},
                                         folder.path()));
  if (status != 0) return Error{.code = Code::Device, .message = "cc: " + readAll(log)};
  library_ = dlopen(to.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return Error{.code = Code::Device, .message = dlerror()};
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i])
      entries_[i]->function = reinterpret_cast<Function*>(dlsym(library_, fmt::format("nest_{}", i).c_str()));
  return {};
}

NestCheck::Bytes NestCheck::bytesOf(RegionId region) const {
  if (region == kNoRegion) return {};
  const TensorRef ref = executable_.ref(region);
  return {ref.data, ref.data + ref.type->bytes()};
}

// The anchor's result in the kind it is computed in.
NestCheck::Bytes NestCheck::givenTo(const Instr& instr) const {
  const TensorRef result = executable_.ref(instr.body.front().results()[0].region);
  const ElemKind kind = nest::computedKind(result.type->kind());
  Bytes given(static_cast<size_t>(result.type->elements() * elemBytes(kind)));
  inDomain(domainOf(result.type->kind()), [&](auto zero) {
    const auto wide = widened<decltype(zero)>(result);
    narrow(kind, wide.data(), result.type->elements(), given.data(), 0);
  });
  return given;
}

// Where no row is wanted the results are whatever was there.
bool NestCheck::isSkipped(const Instr& instr) const {
  if (instr.predicate == kNoRegion) return false;
  const Bytes rows = bytesOf(instr.predicate);
  return std::all_of(rows.begin(), rows.end(), [](std::byte row) { return row == std::byte{0}; });
}

void NestCheck::begin(size_t number) {
  operands_.clear();
  if (!entries_[number]) return;
  for (const Operand& operand : executable_.program().instrs[number].operands)
    operands_.push_back(bytesOf(operand.region));
}

// Runs on copies of the operands, as they were before the instruction.
void NestCheck::compare(const Instr& instr, const Entry& entry, std::string_view way, const Runner& run) {
  std::vector<Bytes> copies = operands_;
  std::vector<std::byte*> addresses;
  for (size_t i = 0; i < copies.size(); ++i) {
    // One region has one address.
    size_t first = 0;
    while (instr.operands[first].region != instr.operands[i].region) ++first;
    addresses.push_back(copies[first].data());
  }
  run(addresses);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Operand& operand = instr.operands[i];
    if (operand.access != Access::Out && operand.access != Access::InOut) continue;
    const std::string what = difference(executable_.ref(operand.region), addresses[i], exact_);
    if (!what.empty()) counts_.differences.push_back(fmt::format("{} {}: {}\n{}", instr.origin, way, what, entry.text));
  }
}

void NestCheck::end(size_t number) {
  if (!entries_[number]) return;
  const Entry& entry = *entries_[number];
  const Instr& instr = executable_.program().instrs[number];
  if (isSkipped(instr)) return;
  ++(entry.epilogue ? counts_.epilogues : entry.nest.reductions.empty() ? counts_.loops : counts_.reducing);
  Bytes given = entry.epilogue ? givenTo(instr) : Bytes();
  compare(instr, entry, "evaluated",
          [&](std::vector<std::byte*>& addresses) { nest::evaluate(entry.nest, addresses, given.data()); });
  compare(instr, entry, "as C", [&](std::vector<std::byte*>& addresses) {
    std::vector<void*> all(addresses.begin(), addresses.end());
    all.push_back(given.data());
    // In two halves, as two threads would.
    const int64_t units = entry.nest.units(), half = units / 2;
    entry.function(all.data(), half, units);
    entry.function(all.data(), 0, half);
  });
}

}  // namespace aglow::testing_support
