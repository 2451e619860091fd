// The loop over a program's steps, and what is a step without being an operator.
#include "backends/cpu/kernels/program.h"

namespace aglow::cpu {

// Whether an instruction under a predicate has anything to do.
extern "C" bool aglow_any_true(const uint8_t* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (rows[i] != 0) return true;
  return false;
}

// A step on as many threads as it is worth, and the run time has.
extern "C" int32_t aglow_spread(const RunTime* runTime, StepFunction* step, void* const* addresses, int64_t units,
                                int64_t rounds, int32_t threads) {
  if (runTime->parallelFor == nullptr) return step(addresses, 0, rounds * units);
  int32_t status = 0;
#pragma clang loop unroll(disable)
  for (int64_t round = 0; round < rounds && status == 0; ++round)
    status =
        runTime->parallelFor(runTime->parallelContext, step, addresses, round * units, (round + 1) * units, threads);
  return status;
}

namespace {

// Tells the observer where one instruction ends and the next begins.
class Observed {
public:
  explicit Observed(const RunTime* runTime)
      : runTime_(runTime != nullptr && runTime->observe != nullptr ? runTime : nullptr) {}
  ~Observed() { end(); }

  void at(int32_t instr) {
    if (runTime_ == nullptr || instr == current_) return;
    end();
    current_ = instr;
    runTime_->observe(runTime_->observeContext, instr, 0);
  }

private:
  void end() {
    if (current_ >= 0) runTime_->observe(runTime_->observeContext, current_, 1);
  }

  const RunTime* runTime_;
  int32_t current_ = -1;
};

void* addressOf(const ProgramTables& tables, void* const* bases, int32_t number) {
  const int32_t base = tables.bases[number];
  if (base == kNoBase) return nullptr;
  // Data is only read.
  void* from = base == kDataBase ? const_cast<void*>(tables.data) : bases[base];
  return static_cast<char*>(from) + tables.offsets[number];
}

}  // namespace

// `slots` has room for the addresses of any step. `observer` is the run time, or null where none is called.
extern "C" int32_t aglow_run_program(const ProgramTables* tables, void* const* bases, void** slots,
                                     const RunTime* runTime, const RunTime* observer) {
  Observed observed(observer);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < tables->count; ++i) {
    const ProgramStep& step = tables->steps[i];
    const int32_t addresses = tables->steps[i + 1].firstAddress - step.firstAddress;
#pragma clang loop unroll(disable)
    for (int32_t slot = 0; slot < addresses; ++slot) slots[slot] = addressOf(*tables, bases, step.firstAddress + slot);
    if (step.kind == ProgramStep::Guard) {
      if (!aglow_any_true(static_cast<const uint8_t*>(slots[0]), step.units)) i += step.function;
      continue;
    }
    observed.at(step.instr);
    StepFunction* const function = tables->functions[step.function];
    const int32_t status = step.kind == ProgramStep::Spread
                               ? aglow_spread(runTime, function, slots, step.units, step.rounds, step.threads)
                               : function(slots, 0, step.rounds * step.units);
    if (status != 0) return status | step.instr << kStatusBits;
  }
  return 0;
}

// Bytes from the second address to the first.
extern "C" int32_t aglow_move_bytes(void* const* p, int64_t begin, int64_t end) {
  __builtin_memmove(static_cast<char*>(p[0]) + begin, static_cast<const char*>(p[1]) + begin,
                    static_cast<uint64_t>(end - begin));
  return 0;
}

// The addresses of a bundle's placeholders in the memory that the caller gives.
extern "C" void aglow_place(void** addresses, void* memory, const int64_t* offsets, int64_t count) {
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < count; ++i) addresses[i] = static_cast<char*>(memory) + offsets[i];
}

}  // namespace aglow::cpu
