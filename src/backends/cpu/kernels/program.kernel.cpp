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
    runTime_->observe(runTime_->observeContext, instr, RunTime::Begins);
  }

private:
  void end() {
    if (current_ >= 0) runTime_->observe(runTime_->observeContext, current_, RunTime::Ends);
  }

  const RunTime* runTime_;
  int32_t current_ = -1;
};

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Those of steps side by side that have a part in the round; steps with more rounds come first.
int32_t inRound(const ProgramStep* head, int64_t round) {
  int32_t count = head->function;
  while (count > 0 && head[count].rounds <= round) --count;
  return count;
}

// A part of one step of a group. Where it fails, the number of the step, counted from the last, stands above its
// status: the largest is that of the first step.
int32_t doPart(const Group& group, void* const* slots, int32_t member, int64_t begin, int64_t end) {
  const ProgramStep& step = group.head[member];
  const RunTime* const observer = group.observer;
  if (observer != nullptr) observer->observe(observer->observeContext, step.instr, RunTime::PartBegins);
  const int32_t status = group.tables->functions[step.function](
      slots + kGroupSlots + (step.firstAddress - group.head[1].firstAddress), begin, end);
  if (observer != nullptr) observer->observe(observer->observeContext, step.instr, RunTime::PartEnds);
  return status == 0 ? 0 : status | (group.head->function - member) << kStatusBits;
}

// Parts of steps side by side, numbered from the first step's first.
int32_t doParts(void* const* slots, int64_t begin, int64_t end) {
  const Group& group = *reinterpret_cast<const Group*>(slots);
  const ProgramStep* const head = group.head;
  const int32_t count = inRound(head, group.round);
  int64_t first = 0;
#pragma clang loop unroll(disable)
  for (int32_t member = 1; member <= count && first < end; ++member) {
    const ProgramStep& step = head[member];
    const int64_t parts = step.threads, from = larger(begin - first, 0), to = smaller(end - first, parts);
    first += parts;
    if (from >= to) continue;
    const int64_t before = group.round * step.units;
    const int32_t status =
        doPart(group, slots, member, before + step.units * from / parts, before + step.units * to / parts);
    if (status != 0) return status;
  }
  return 0;
}

// Parts of a chain: each goes through all steps before the next.
int32_t doLinks(void* const* slots, int64_t begin, int64_t end) {
  const Group& group = *reinterpret_cast<const Group*>(slots);
  const ProgramStep* const head = group.head;
#pragma clang loop unroll(disable)
  for (int64_t part = begin; part < end; ++part)
#pragma clang loop unroll(disable)
    for (int32_t member = 1; member <= head->function; ++member) {
      const int64_t units = head[member].units / head->units;
      const int32_t status = doPart(group, slots, member, units * part, units * (part + 1));
      if (status != 0) return status;
    }
  return 0;
}

void* addressOf(const ProgramTables& tables, void* const* bases, int32_t number) {
  const int32_t base = tables.bases[number];
  if (base == kNoBase) return nullptr;
  // Data is only read.
  void* from = base == kDataBase ? const_cast<void*>(tables.data) : bases[base];
  return static_cast<char*>(from) + tables.offsets[number];
}

}  // namespace

namespace {

// Steps of a group; what the program gives where one fails.
int32_t runGroup(const ProgramTables* tables, const ProgramStep* head, void* const* bases, void** slots,
                 const RunTime* runTime, const RunTime* observer) {
  Group& group = *reinterpret_cast<Group*>(slots);
  group = {tables, head, observer != nullptr && observer->observe != nullptr ? observer : nullptr, 0};
  const int32_t from = head[1].firstAddress, addresses = head[head->function + 1].firstAddress - from;
#pragma clang loop unroll(disable)
  for (int32_t slot = 0; slot < addresses; ++slot) slots[kGroupSlots + slot] = addressOf(*tables, bases, from + slot);
  const bool chain = head->kind == ProgramStep::Chain;
  StepFunction* const work = chain ? doLinks : doParts;
#pragma clang loop unroll(disable)
  for (; group.round < head->rounds; ++group.round) {
    int64_t parts = chain ? head->units : 0;
    if (!chain)
      for (int32_t member = inRound(head, group.round); member > 0; --member) parts += head[member].threads;
    // Where one thread is all there is, there may be no run time.
    const int32_t status = head->threads < 2 || runTime->parallelFor == nullptr
                               ? work(slots, 0, parts)
                               : runTime->parallelFor(runTime->parallelContext, work, slots, 0, parts, head->threads);
    if (status == 0) continue;
    const int32_t member = head->function - (status >> kStatusBits);
    return (status & ((1 << kStatusBits) - 1)) | head[member].instr << kStatusBits;
  }
  return 0;
}

void findAddresses(const ProgramTables* tables, const ProgramStep* step, void* const* bases, void** slots) {
  const int32_t addresses = step[1].firstAddress - step->firstAddress;
#pragma clang loop unroll(disable)
  for (int32_t slot = 0; slot < addresses; ++slot) slots[slot] = addressOf(*tables, bases, step->firstAddress + slot);
}

// Whether one of the rows that a part belongs to is wanted.
bool isWanted(const ProgramStep* guard, const uint8_t* rows, int64_t part) {
  const int64_t parts = guard->rounds, first = part * guard->units / parts;
  const int64_t end = ((part + 1) * guard->units + parts - 1) / parts;
  return aglow_any_true(rows + first, end - first);
}

// The steps after a guard, for those of their parts that are wanted.
int32_t runRows(const ProgramTables* tables, const ProgramStep* guard, const uint8_t* rows, void* const* bases,
                void** slots, const RunTime* runTime) {
  const int64_t parts = guard->rounds;
#pragma clang loop unroll(disable)
  for (int64_t end = 0; end < parts;) {
    int64_t begin = end;
    while (begin < parts && !isWanted(guard, rows, begin)) ++begin;
    end = begin;
    while (end < parts && isWanted(guard, rows, end)) ++end;
    if (begin == end) break;
#pragma clang loop unroll(disable)
    for (const ProgramStep* step = guard + 1; step <= guard + guard->function; ++step) {
      findAddresses(tables, step, bases, slots);
      StepFunction* const function = tables->functions[step->function];
      const int64_t units = step->units / parts;
      const int32_t status = step->kind != ProgramStep::Spread || runTime->parallelFor == nullptr
                                 ? function(slots, units * begin, units * end)
                                 : runTime->parallelFor(runTime->parallelContext, function, slots, units * begin,
                                                        units * end, step->threads);
      if (status != 0) return status;
    }
  }
  return 0;
}

}  // namespace

// `slots` has room for the addresses of any step. `observer` is the run time, or null where none is called.
extern "C" int32_t aglow_run_program(const ProgramTables* tables, void* const* bases, void** slots,
                                     const RunTime* runTime, const RunTime* observer) {
  Observed observed(observer);
#pragma clang loop unroll(disable)
  for (int64_t i = 0; i < tables->count; ++i) {
    const ProgramStep& step = tables->steps[i];
    if (step.kind == ProgramStep::Beside && runTime->parallelFor == nullptr) continue;
    if (step.kind == ProgramStep::Beside || step.kind == ProgramStep::Chain) {
      observed.at(step.instr);
      if (const int32_t status = runGroup(tables, &step, bases, slots, runTime, observer); status != 0) return status;
      i += step.function;
      continue;
    }
    findAddresses(tables, &step, bases, slots);
    if (step.kind == ProgramStep::Guard) {
      const auto* rows = static_cast<const uint8_t*>(slots[0]);
      const bool any = aglow_any_true(rows, step.units);
      if (any && step.rounds > 0) {
        observed.at(step.instr);
        const int32_t status = runRows(tables, &step, rows, bases, slots, runTime);
        if (status != 0) return status | step.instr << kStatusBits;
      }
      if (!any || step.rounds > 0) i += step.function;
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
