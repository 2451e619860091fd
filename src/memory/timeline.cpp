#include "memory/timeline.h"

#include <algorithm>

namespace aglow {

void DeviceClock::run(size_t number, bool skipped) {
  const Instr& instr = program_.instrs[number];
  if (!banks_.travels(instr)) {
    const double seconds = skipped ? 0 : model_.secondsOf(program_, instr);
    if (seconds > 0) timeline_.rows.push_back({.instr = number, .begin = now_, .end = now_ + seconds});
    now_ += seconds;
  } else if (instr.kind == Instr::Kind::CopyStart) {
    const double seconds = skipped ? 0 : model_.copySeconds(program_[instr.operands[0].region].type.bytes());
    const double begin = std::max(now_, copiesDone_);
    copiesDone_ = begin + seconds;
    rows_[instr.token] = timeline_.rows.size();
    timeline_.rows.push_back({.instr = number, .engine = Timeline::Engine::Copy, .begin = begin, .end = copiesDone_});
    timeline_.copySeconds += seconds;
  } else {
    const auto it = rows_.find(instr.token);
    AGLOW_CHECK(it != rows_.end(), "a copy is waited for that never began");
    Timeline::Row& row = timeline_.rows[it->second];
    row.exposed = std::max(0., row.end - now_);
    timeline_.exposedSeconds += row.exposed;
    now_ += row.exposed;
    rows_.erase(it);
  }
  timeline_.seconds = std::max(now_, copiesDone_);
}

Timeline simulate(const Program& program, const LatencyModel& model) {
  DeviceClock clock(program, model);
  for (size_t i = 0; i < program.instrs.size(); ++i) clock.run(i);
  return clock.timeline();
}

}  // namespace aglow
