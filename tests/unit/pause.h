// An observer that stands still in the middle of a run, until it may go on.
#pragma once

#include <future>

#include "backends/backend.h"

namespace aglow::testing_support {

class Pause : public RunObserver {
public:
  void begin(size_t /*instr*/) override {
    if (seen_) return;
    seen_ = true;
    reached.set_value();
    goOn.get_future().wait();
  }
  void end(size_t /*instr*/) override {}

  std::promise<void> reached, goOn;

private:
  bool seen_ = false;
};

}  // namespace aglow::testing_support
