#include "backends/cpu/llvm/program_tables.h"

#include <algorithm>

#include "inst/chain.h"
#include "inst/cost.h"

namespace aglow::codegen {

namespace {

using cpu::ProgramStep;

class Tables {
public:
  Tables(StepFunctions& functions, const Program& program, const MemoryMap& memory, const CodeOptions& options)
      : functions_(functions), program_(program), memory_(memory), options_(options) {}

  void run() {
    const std::span<const Instr> instrs = program_.instrs;
    for (size_t i = 0, end = 0; i < instrs.size(); i = end) {
      end = chainEnd(instrs, i);
      if (end - i > 1) {
        addChain(i, end);
        continue;
      }
      end = options_.threads ? besideEnd(instrs, i) : i + 1;
      if (end - i > 1)
        addBeside(i, end);
      else
        add(instrs[i], static_cast<int32_t>(i));
    }
    row({.kind = ProgramStep::Alone}, {});
  }

  std::vector<llvm::Constant*> functions;
  std::vector<ProgramStep> steps;
  std::vector<int32_t> bases;
  std::vector<int64_t> offsets;
  size_t mostAddresses = 1;

private:
  void add(const Instr& instr, int32_t number) {
    const Steps all = functions_.of(instr);
    if (all.empty()) return;
    if (instr.predicate != kNoRegion)
      row({.units = program_[instr.predicate].type.elements(),
           .rounds = instr.plan && instr.plan->cut ? static_cast<int32_t>(instr.plan->cut->count()) : 0,
           .function = static_cast<int32_t>(all.size()),
           .kind = ProgramStep::Guard,
           .instr = number},
          {{{instr.predicate}}});
    for (const Step& step : all) {
      const int threads = options_.threads ? functions_.threadsWorth(instr, step) : 1;
      row({.units = step.units,
           .rounds = static_cast<int32_t>(step.rounds),
           .function = numberOf(step.function),
           .kind = threads > 1 ? ProgramStep::Spread : ProgramStep::Alone,
           .instr = number,
           .threads = threads},
          step.addresses);
    }
  }

  // The first steps of all instructions, then the second ones, and so on.
  void addBeside(size_t first, size_t end) {
    std::vector<Steps> all;
    size_t most = 0;
    for (size_t i = first; i < end; ++i) {
      all.push_back(functions_.of(program_.instrs[i]));
      most = std::max(most, all.back().size());
    }
    for (size_t number = 0; number < most; ++number) {
      std::vector<Member> members;
      for (size_t i = first; i < end; ++i) {
        const Steps& own = all[i - first];
        if (number < own.size()) members.push_back(memberOf(own[number], i));
      }
      addMembers(std::move(members), static_cast<int32_t>(first));
    }
  }

  // All steps of all instructions, part by part.
  void addChain(size_t first, size_t end) {
    std::vector<Steps> all;
    size_t count = 0, addresses = cpu::kGroupSlots;
    double sum = 0;
    for (size_t i = first; i < end; ++i) {
      all.push_back(functions_.of(program_.instrs[i]));
      for (const Step& step : all.back()) {
        count += 1;
        addresses += step.addresses.size();
      }
      sum += microsecondsOf(costOf(program_, program_.instrs[i]));
    }
    mostAddresses = std::max(mostAddresses, addresses);
    row({.units = program_.instrs[first].plan->cut->count(),
         .rounds = 1,
         .function = static_cast<int32_t>(count),
         .kind = ProgramStep::Chain,
         .instr = static_cast<int32_t>(first),
         .threads = options_.threads ? threadsWorth(sum) : 1},
        {});
    for (size_t i = first; i < end; ++i)
      for (const Step& step : all[i - first])
        row({.units = step.units,
             .rounds = 1,
             .function = numberOf(step.function),
             .kind = ProgramStep::Link,
             .instr = static_cast<int32_t>(i),
             .threads = 1},
            step.addresses);
  }

  struct Member {
    const Step* step;
    size_t instr;
    double microseconds;
    int64_t parts;
  };

  Member memberOf(const Step& step, size_t number) const {
    // As the pool cuts a step: a few parts for each thread that it is worth.
    constexpr int64_t kParts = 4;
    const Instr& instr = program_.instrs[number];
    return {.step = &step,
            .instr = number,
            .microseconds = functions_.microseconds(instr, step),
            .parts = std::min(step.units, kParts * functions_.threadsWorth(instr, step))};
  }

  void addMembers(std::vector<Member> members, int32_t instr) {
    // Those with more rounds come first, as the loop over them wants it; then those whose parts take longest.
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::pair(a.step->rounds, a.microseconds / static_cast<double>(a.parts)) >
             std::pair(b.step->rounds, b.microseconds / static_cast<double>(b.parts));
    });
    double sum = 0;
    size_t addresses = cpu::kGroupSlots;
    for (const Member& member : members) {
      sum += member.microseconds;
      addresses += member.step->addresses.size();
    }
    mostAddresses = std::max(mostAddresses, addresses);
    row({.rounds = static_cast<int32_t>(members.front().step->rounds),
         .function = static_cast<int32_t>(members.size()),
         .kind = ProgramStep::Beside,
         .instr = instr,
         .threads = threadsWorth(sum)},
        {});
    for (const Member& member : members)
      row({.units = member.step->units,
           .rounds = static_cast<int32_t>(member.step->rounds),
           .function = numberOf(member.step->function),
           .kind = ProgramStep::Member,
           .instr = static_cast<int32_t>(member.instr),
           .threads = static_cast<int32_t>(member.parts)},
          member.step->addresses);
  }

  void row(ProgramStep step, std::span<const StepAddress> addresses) {
    AGLOW_CHECK(bases.size() + addresses.size() <= INT32_MAX, "a program with more addresses than can be numbered");
    step.firstAddress = static_cast<int32_t>(bases.size());
    for (const StepAddress& address : addresses) {
      const Address at = address.region == kNoRegion            ? Address{cpu::kNoBase, 0}
                         : address.region == StepAddress::kData ? Address{cpu::kDataBase, 0}
                                                                : memory_[address.region];
      bases.push_back(at.base);
      offsets.push_back(at.offset + address.offset);
    }
    mostAddresses = std::max(mostAddresses, addresses.size());
    steps.push_back(step);
  }

  int32_t numberOf(llvm::Function* function) {
    const auto [it, fresh] = numbers_.try_emplace(function, static_cast<int32_t>(functions.size()));
    if (fresh) functions.push_back(function);
    return it->second;
  }

  StepFunctions& functions_;
  const Program& program_;
  const MemoryMap& memory_;
  const CodeOptions& options_;
  std::unordered_map<llvm::Function*, int32_t> numbers_;
};

llvm::GlobalVariable* constant(llvm::Module& module, llvm::Constant* value, const std::string& name) {
  auto* global =
      new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return global;
}

}  // namespace

llvm::GlobalVariable* dataTable(llvm::Module& module, llvm::StringRef bytes, size_t alignment,
                                const std::string& name) {
  llvm::Constant* data =
      llvm::ConstantDataArray::getRaw(bytes, bytes.size(), llvm::Type::getInt8Ty(module.getContext()));
  llvm::GlobalVariable* global = constant(module, data, name);
  global->setAlignment(llvm::Align(alignment));
  return global;
}

void emitTables(llvm::IRBuilder<>& b, Library& library, StepFunctions& functions, const Program& program,
                const MemoryMap& memory, const CodeOptions& options) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::Module& module = *function->getParent();
  Tables tables(functions, program, memory, options);
  tables.run();
  auto* pointers = llvm::ArrayType::get(b.getPtrTy(), tables.functions.size());
  llvm::Constant* all = llvm::ConstantStruct::getAnon(
      {constant(module, llvm::ConstantArray::get(pointers, tables.functions), options.name + ".functions"),
       dataTable(module, tables.steps, options.name + ".steps"), b.getInt64(tables.steps.size() - 1),
       dataTable(module, tables.bases, options.name + ".bases"),
       dataTable(module, tables.offsets, options.name + ".offsets"),
       dataTable(module, functions.data(), alignof(int64_t), options.name + ".data")});
  llvm::Value* slots = b.CreateAlloca(llvm::ArrayType::get(b.getPtrTy(), tables.mostAddresses));
  llvm::Value *bases = function->getArg(0), *runTime = function->getArg(1);
  llvm::Value* observer = options.observed ? runTime : llvm::ConstantPointerNull::get(b.getPtrTy());
  llvm::Value* run = constant(module, all, options.name + ".tables");
  b.CreateRet(library.call(b, "run_program", {run, bases, slots, runTime, observer}, b.getInt32Ty()));
}

}  // namespace aglow::codegen
