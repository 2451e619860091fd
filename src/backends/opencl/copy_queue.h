// Copies between host and device on a queue of their own, beside kernels: copy.start and copy.wait.
#pragma once

#include <vector>

#include "backends/device/steps.h"
#include "backends/opencl/driver.h"

namespace aglow::opencl {

class CopyQueue {
public:
  static Result<CopyQueue> create(const Driver& driver, Bits properties = 0);

  // Before a run with so many copies.
  void begin(size_t transfers);
  // A copy that begins when all kernels that were enqueued before are done: they may use its memory. Its event goes to
  // a place of the caller's, who has it until the run is done, or is kept here.
  Status start(const Driver& driver, Queue kernels, size_t number, const device::Transfer& transfer, Memory memory,
               uint64_t offset, std::byte* host, Event* place = nullptr);
  // Kernels that are enqueued from here on begin when the copy is done.
  Status wait(const Driver& driver, Queue kernels, size_t number);
  Status finish(const Driver& driver) const;

private:
  OwnQueue queue_;
  std::vector<Event> done_;  // by number; none where nothing travels
  std::vector<OwnEvent> kept_;
};

}  // namespace aglow::opencl
