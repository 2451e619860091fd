// One request, or one batch of them, through the parts of a network: a part is sent to its device when all it reads is
// there, and whoever asked is called when the last one has ended. No thread waits.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace aglow {

// A copy of a network on devices: where each part is.
struct Replica {
  std::vector<std::shared_ptr<Resident>> parts;
};

struct Execution {
  std::shared_ptr<const PartGraph> graph;
  std::shared_ptr<const Replica> replica;
  Values inputs;
  int priority = 0;
  bool inPlace = false;          // as DeviceManager::Job has it
  std::function<bool()> wanted;  // asked before each part but the first: false ends it, as Cancelled
  std::function<void(Outputs)> done;
};

// False, and the execution is the caller's still, where the device of its first part takes no more.
bool startExecution(Execution& execution);

}  // namespace aglow
