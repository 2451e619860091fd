// How a run is asked to end before it is done.
#pragma once

#include <functional>

#include "support/error.h"

namespace aglow {

// While it lives, long work of this thread asks it from time to time: devices between batches of kernels, the
// interpreter between instructions. Where it says yes, the work ends with Cancelled. The innermost of several counts.
class StopScope {
public:
  explicit StopScope(std::function<bool()> asked);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  // Whether this thread has one at all.
  static bool present();
  // Cancelled where this thread is asked to stop.
  static Status check();

private:
  std::function<bool()> asked_;
  const StopScope* outer_;
};

}  // namespace aglow
