// The running of passes: hooks, time and fixed points.
#include "rewrite/pipeline.h"

#include <algorithm>
#include <chrono>

namespace aglow {

Pipeline& Pipeline::add(Pass pass) {
  steps_.push_back({.passes = {std::move(pass)}});
  return *this;
}

Pipeline& Pipeline::addGroup(std::vector<Pass> passes, int maxRounds) {
  steps_.push_back({.passes = std::move(passes), .maxRounds = maxRounds});
  return *this;
}

std::vector<const Pass*> Pipeline::passes() const {
  std::vector<const Pass*> all;
  for (const Step& step : steps_)
    for (const Pass& pass : step.passes) all.push_back(&pass);
  return all;
}

namespace {

class Run {
public:
  Run(Function& function, PassContext& context, const PassHooks& hooks)
      : function_(function), context_(context), hooks_(hooks) {}

  // One pass; says whether it changed anything.
  Result<bool> pass(const Pass& pass) {
    if (!context_.enabled(pass.name)) return false;
    if (hooks_.before) AGLOW_OK(hooks_.before(pass, function_));
    const auto start = std::chrono::steady_clock::now();
    Result<bool> changed = pass.run(function_, context_);
    if (!changed.ok()) return std::move(changed).error().at("pass '" + pass.name + "'");
    PassTime& time = timeOf(pass.name);
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    time.runs += 1;
    time.changes += *changed ? 1 : 0;
    report.changed |= *changed;
    if (!hooks_.after) return changed;
    AGLOW_TRY(const bool goOn, hooks_.after(pass, function_, *changed));
    report.stopped = !goOn;
    return changed;
  }

  PipelineReport report;

private:
  PassTime& timeOf(const std::string& name) {
    const auto it = std::find_if(report.passes.begin(), report.passes.end(),
                                 [&](const PassTime& time) { return time.name == name; });
    if (it != report.passes.end()) return *it;
    report.passes.push_back({.name = name});
    return report.passes.back();
  }

  Function& function_;
  PassContext& context_;
  const PassHooks& hooks_;
};

}  // namespace

Result<PipelineReport> Pipeline::run(Function& function, PassContext& context, const PassHooks& hooks) const {
  Run run(function, context, hooks);
  for (const Step& step : steps_) {
    bool changed = true;
    for (int round = 0; changed && round < step.maxRounds; ++round) {
      changed = false;
      for (const Pass& pass : step.passes) {
        AGLOW_TRY(const bool passChanged, run.pass(pass));
        changed |= passChanged;
        if (run.report.stopped) return std::move(run.report);
      }
    }
  }
  return std::move(run.report);
}

}  // namespace aglow
