// Facts about the machine the compiler runs on.
#pragma once

#include <cstdint>

namespace aglow {

// Bytes of main memory.
int64_t machineMemory();
// Processors that this process may use: those of its affinity mask, or fewer where its control groups allow it less
// time.
int machineThreads();
// The most bytes of main memory that this process has held so far.
int64_t peakResidentBytes();
// Those that it holds now and shares with no other process; 0 where the system does not tell.
int64_t privateBytes();

// What the processor can do at most, by a short measurement (about a tenth of a second) on `threads` threads.
struct MachinePeak {
  double flops = 0;           // f32 operations per second, in multiply-adds on the widest vectors
  double bytesPerSecond = 0;  // read from main memory
};
MachinePeak measurePeak(int threads);

}  // namespace aglow
