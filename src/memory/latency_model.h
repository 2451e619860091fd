// What a device takes for what, as far as the order of copies depends on it: rough numbers, one row per device.
#pragma once

#include <cstdint>

#include "inst/program.h"

namespace aglow {

struct LatencyModel {
  // Computing: what is slower of arithmetic and the device's memory, after a start.
  double flopsPerSecond = 1e12;
  double bytesPerSecond = 100e9;
  double startSeconds = 5e-6;
  // Copies between host and device: one engine, which makes one after the other.
  double copyBytesPerSecond = 12e9;
  double copyStartSeconds = 10e-6;
  // It computes in the host's memory: nothing has to travel, unless its own memory is bounded.
  bool sharesMemory = false;
  int64_t memoryBytes = 0;  // of the device; 0: no bound

  // Of an instruction that runs on the device; nothing for marks and waits.
  double secondsOf(const Program& program, const Instr& instr) const;
  double copySeconds(int64_t bytes) const;
};

}  // namespace aglow
