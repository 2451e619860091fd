// A program as generated code keeps it: tables of constants that one loop walks. So the code of a program grows with
// its different steps, not with how many there are.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

using StepFunction = int32_t(void* const* addresses, int64_t begin, int64_t end);

// What generated code may ask of the program around it.
struct RunTime {
  enum Moment : int32_t { Begins, Ends, PartBegins, PartEnds };
  // Calls step for parts of the units from begin to end, from any number of threads, of which `threads` are worth their
  // while; gives the largest of what the calls give. None: one call.
  int32_t (*parallelFor)(void* context, StepFunction* step, void* const* addresses, int64_t begin, int64_t end,
                         int32_t threads) = nullptr;
  void* parallelContext = nullptr;
  // Called before and after each instruction, with its number; for those side by side or chained with that of the first
  // alone, and besides for each part of one, by whichever thread does it. May be null.
  void (*observe)(void* context, int32_t instr, Moment moment) = nullptr;
  void* observeContext = nullptr;
};

// Of what a program gives: the status of a step in the low bits, the number of its instruction above.
inline constexpr int32_t kStatusBits = 4;

struct ProgramStep {
  enum Kind : int32_t {
    Alone,   // the function is called once, for all units
    Spread,  // the run time may call it in parts, on at most `threads` threads
    Guard,   // unless one of `units` bools at its address is true, the next `function` steps are left out; those fall
             // into `rounds` parts, unless that is 0, and are done for parts with a bool that is true
    Beside,  // the next `function` steps, which are independent of each other, are shared as one, on `threads` threads
    Member,  // of those: is cut into `threads` parts
    Chain,   // the next `function` steps are done part by part, in `units` parts, on `threads` threads
    Link,    // of those
  };
  int64_t units;         // of one round
  int32_t rounds;        // one after the other, each with the units after those of the round before
  int32_t function;      // its number among the program's functions
  int32_t firstAddress;  // up to that of the next step
  Kind kind;
  int32_t instr;
  int32_t threads;
};

// Address `i` of a program's steps lies `offsets[i]` bytes after the base with the number `bases[i]`, or after the
// program's own data; null where that is kNoBase.
inline constexpr int32_t kNoBase = -1, kDataBase = -2;
struct ProgramTables {
  StepFunction* const* functions;
  const ProgramStep* steps;  // and one more, which ends the addresses of the last
  int64_t count;
  const int32_t* bases;
  const int64_t* offsets;
  const void* data;
};

// What the parts of steps side by side, or chained, find in the slots before the addresses of the first step.
struct Group {
  const ProgramTables* tables;
  const ProgramStep* head;
  const RunTime* observer;  // or null
  int64_t round;
};
inline constexpr int32_t kGroupSlots = sizeof(Group) / sizeof(void*);

}  // namespace aglow::cpu
