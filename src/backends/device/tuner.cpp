#include "backends/device/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "backends/device_observer.h"
#include "backends/plan.h"
#include "inst/fused.h"
#include "memory/pass_table.h"
#include "support/stop.h"

namespace aglow::device {

namespace {

// Notes what is asked, and gives the answers that are to be tried.
class Trial final : public codegen::Ways {
public:
  size_t choose(const std::string& question, std::span<const std::string> ways) const override {
    asked.try_emplace(question, ways.begin(), ways.end());
    const auto it = tried.find(question);
    return it == tried.end() ? 0 : it->second;
  }

  mutable std::map<std::string, std::vector<std::string>> asked;
  std::map<std::string, size_t> tried;
};

// The anchor of the instruction, between placeholders.
Program alone(const Program& program, const Instr& instr) {
  const Instr& anchor = bodyOf(instr).front();
  Program made;
  made.name = "alone";
  Instr copy{.attrs = anchor.attrs, .origin = anchor.origin};
  std::map<RegionId, RegionId> regions;
  for (const Operand& operand : anchor.operands) {
    if (operand.access == Access::Scratch) continue;
    const auto [it, isNew] = regions.try_emplace(operand.region, kNoRegion);
    if (isNew && operand.region != kNoRegion)
      it->second = made.add({.name = fmt::format("operand_{}", regions.size()),
                             .type = program[operand.region].type,
                             .source = PlaceholderInit{operand.access}});
    copy.operands.push_back({it->second, operand.access});
  }
  made.instrs.push_back(std::move(copy));
  return made;
}

// What its kernels ask, with all ways.
std::map<std::string, std::vector<std::string>> questionsOf(Program program, codegen::DeviceShape shape) {
  const Trial trial;
  shape.ways = &trial;
  const RegionId scratch =
      program.add({.name = "scratch", .type = Type(ElemKind::UInt8, Shape{1}), .source = Allocated{}});
  program.instrs[0].operands.push_back({scratch, Access::Scratch});
  codegen::launchesOf(program, program.instrs[0], shape);
  return trial.asked;
}

class Stopwatch final : public DeviceObserver {
public:
  double seconds = 0;

private:
  void begin(size_t) override {}
  void end(size_t) override {}
  void ran(size_t, Time begin, Time end) override { seconds += std::chrono::duration<double>(end - begin).count(); }
  void copied(std::string_view, int64_t, Time, Time) override {}
};

}  // namespace

Result<double> secondsOf(Program program, const Backend& backend) {
  constexpr int kRuns = 5;  // after one that does not count
  AGLOW_OK(planInstructions(program, backend));
  AGLOW_OK(runMemoryPasses(program));
  AGLOW_TRY(const std::unique_ptr<Executable> executable, backend.compile(std::move(program), {}));
  std::vector<Tensor> inputs;
  for (const Binding& input : executable->inputs()) inputs.emplace_back(input.type);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= kRuns; ++i) {
    Stopwatch watch;
    AGLOW_TRY(const std::vector<Tensor> outputs, executable->run(inputs, &watch));
    if (i > 0) least = std::min(least, watch.seconds);
  }
  return least;
}

Kept Tuner::keptOf(const std::string& question) const {
  return {folder_, PackageCache::kMeasured, identity_, "the quickest: " + question};
}

size_t Tuner::choose(const std::string& question, std::span<const std::string> ways) const {
  const std::lock_guard lock(mutex_);
  const auto known = quickest_.find(question);
  if (known == quickest_.end()) return 0;
  const auto it = std::find(ways.begin(), ways.end(), known->second);
  return it == ways.end() ? 0 : static_cast<size_t>(it - ways.begin());
}

Status Tuner::tune(const Program& program, const Instr& instr) {
  if (!codegen::hasWays(bodyOf(instr).front().attrs.op())) return {};
  const Program one = alone(program, instr);
  const std::lock_guard lock(mutex_);
  for (const auto& [question, ways] : questionsOf(one, shape_)) {
    std::string& quickest = quickest_[question];
    if (!quickest.empty()) continue;
    quickest = keptOf(question).find().value_or("");
    if (std::find(ways.begin(), ways.end(), quickest) != ways.end()) continue;
    quickest = ways[0];
    if (ways.size() == 1) continue;
    // A part is written as the whole is, of which its own times say nothing.
    const bool part = codegen::isPart(one.instrs[0].attrs);
    Status measured = part ? Status() : measure(one, question, ways);
    if (part || !measured.ok()) quickest_.erase(question);  // who comes next measures it
    AGLOW_OK(std::move(measured));
  }
  return {};
}

Status Tuner::measure(const Program& program, const std::string& question, std::span<const std::string> ways) {
  using Clock = std::chrono::steady_clock;
  constexpr int kEnoughInVain = 4;
  constexpr double kShare = 0.1;  // of all seconds, for one question
  const Clock::time_point start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const double most = std::min(options_.seconds - spent_, kShare * options_.seconds);
  double least = std::numeric_limits<double>::infinity();
  size_t way = 0;
  int inVain = 0;
  bool enough = true;
  for (; way < ways.size() && inVain < kEnoughInVain; ++way) {
    enough = spent() <= most;
    if (!enough) break;
    Trial trial;
    trial.tried[question] = way;
    const Result<double> seconds = measure_(program, trial);
    // Runs that are measured are too short to be asked themselves.
    AGLOW_OK(StopScope::check());
    // What does not fit is not taken; a device that fails is no answer.
    if (!seconds.ok() && seconds.error().code == Code::Device) return seconds.error();
    if (!seconds.ok()) continue;
    inVain = *seconds < least ? 0 : inVain + 1;
    if (*seconds >= least) continue;
    least = *seconds;
    quickest_[question] = ways[way];
  }
  spent_ += spent();
  if (enough) keptOf(question).keep(quickest_[question]);
  if (options_.tell)
    options_.tell(fmt::format("{}: {}, measured {} of {}, {:.1f} of {:g} s{}", question, quickest_[question], way,
                              ways.size(), spent_, options_.seconds, enough ? "" : " (no time for more)"));
  return {};
}

}  // namespace aglow::device
