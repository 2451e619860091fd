// A program as the steps that a device takes: which kernel, over how many items, with which places as arguments.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backends/device/kernel_texts.h"
#include "backends/device/memory_plan.h"
#include "codegen/clike/launch.h"
#include "inst/program.h"

namespace aglow::device {

// Of an instruction that looks at indices: whether one lay outside of its axis, and which.
struct Fault {
  int32_t seen = 0;
  int32_t unused = 0;
  int64_t index = 0;
};

// One kernel of an instruction; or the start of a copy between host and device, or the wait for it.
struct Step {
  enum class Kind : uint8_t { Kernel, Start, Wait };

  size_t instr = 0;
  Kind kind = Kind::Kernel;
  size_t kernel = 0;
  std::array<size_t, 2> items = {1, 1}, group = {1, 1};
  std::vector<Place> arguments;
  bool endsBatch = false;  // some milliseconds of work: the host may look around before it enqueues more
  size_t transfer = 0;     // Start, Wait: its number
};

// Bytes between host and device.
struct Transfer {
  bool toDevice = true;
  Place place;                  // on the device
  RegionId region = kNoRegion;  // of the host: a constant or placeholder
  uint64_t offset = 0;          // in it
  int64_t bytes = 0;
};

struct Loaded {
  Program program;
  std::vector<Step> steps;
  std::vector<Transfer> transfers;
  std::vector<size_t> checked;  // instructions with a fault of their own, by its number
  // Arguments that are inputs or outputs: which of which step.
  std::vector<std::pair<size_t, size_t>> ioArguments;
  bool readsState = false, writesState = false;

  // The node of an instruction, for messages.
  std::string nodeOf(size_t instr) const;
  // Instructions whose kernels compute with f64 that are the program's: not those that only move them, nor sums of
  // narrower kinds.
  std::vector<size_t> computesF64(const KernelTexts& kernels) const;
  // RuntimeValue for the first fault that kernels have seen.
  Status checkFaults(std::span<const Fault> seen) const;
};

// The plan gets room for the faults, the texts the kernels.
Loaded makeSteps(Program program, MemoryPlan& plan, KernelTexts& kernels, const codegen::DeviceShape& shape);

}  // namespace aglow::device
