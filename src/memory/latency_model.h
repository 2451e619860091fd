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
  // Inputs, outputs and weights that have no room travel beside what is computed; only where the device has no room for
  // everything, which costs least as long as it has; or never, where it computes in the host's memory.
  enum class Travel : uint8_t { Always, WhereFull, Never };
  Travel travel = Travel::Always;
  int64_t memoryBytes = 0;  // of the device; 0: no bound
  int64_t bufferBytes = 0;  // of one buffer, as all that lies in the arena together is one; 0: no bound

  // Of an instruction that runs on the device; nothing for marks and waits.
  double secondsOf(const Program& program, const Instr& instr) const;
  double copySeconds(int64_t bytes) const;
};

}  // namespace aglow
