// A list of passes, run one after the other or, as a group, again and again until none changes anything. The pipeline
// keeps time and calls the hooks with which a driver prints, verifies and stops.
#pragma once

#include <vector>

#include "rewrite/pass.h"

namespace aglow {

struct PassHooks {
  std::function<Status(const Pass&, Function&)> before = {};
  // False ends the pipeline with this pass.
  std::function<Result<bool>(const Pass&, Function&, bool changed)> after = {};
};

struct PassTime {
  std::string name;
  int runs = 0;
  int changes = 0;  // runs that changed something
  double seconds = 0;
};

struct PipelineReport {
  bool changed = false;
  bool stopped = false;  // by a hook
  std::vector<PassTime> passes;
};

class Pipeline {
public:
  explicit Pipeline(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  Pipeline& add(Pass pass);
  // Runs these to a fixed point. One that is not reached in `maxRounds` rounds ends the group without a fault: every
  // state on the way is right.
  Pipeline& addGroup(std::vector<Pass> passes, int maxRounds = 20);

  // All passes, in order, each once.
  std::vector<const Pass*> passes() const;

  // Passes that the context disables are left out.
  Result<PipelineReport> run(Function& function, PassContext& context, const PassHooks& hooks = {}) const;

private:
  struct Step {
    std::vector<Pass> passes;
    int maxRounds = 1;
  };

  std::string name_;
  std::vector<Step> steps_;
};

}  // namespace aglow
