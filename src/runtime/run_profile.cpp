#include "runtime/run_profile.h"

#include <algorithm>
#include <numeric>

#include "inst/instr_names.h"

namespace aglow {

namespace {

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

double RunProfile::Line::seconds() const {
  if (times.empty()) return 0;
  std::vector<double> sorted = times;
  std::nth_element(sorted.begin(), sorted.begin() + std::ssize(sorted) / 2, sorted.end());
  return sorted[sorted.size() / 2];
}

RunProfile::RunProfile(const Program& program) {
  int groups = 0;
  for (const Instr& instr : program.instrs) {
    const bool joins = instr.beside || instr.chained;
    if (joins && lines_.back().group == 0) {
      lines_.back().group = ++groups;
      lines_.back().chained = instr.chained;
    }
    lines_.push_back({.node = instr.origin,
                      .instruction = operatorsOf(instr),
                      .kernel = kernelOf(instr),
                      .cost = costOf(program, instr),
                      .marker = instr.isMarker(),
                      .group = joins ? groups : 0,
                      .chained = instr.chained});
  }
}

void RunProfile::startRun(int threads) {
  events_.clear();
  events_.reserve(lines_.size());
  parts_.resize(static_cast<size_t>(threads));
  for (std::vector<Event>& parts : parts_) parts.clear();
  copies_.clear();
  start_ = Clock::now();
}

void RunProfile::begin(size_t instr) { events_.push_back({.instr = instr, .begin = Clock::now(), .end = {}}); }

void RunProfile::end(size_t) { events_.back().end = Clock::now(); }

void RunProfile::part(size_t instr, int thread, Time begin, Time end) {
  parts_[static_cast<size_t>(thread)].push_back({.instr = instr, .begin = begin, .end = end});
}

void RunProfile::ran(size_t instr, Time begin, Time end) {
  events_.push_back({.instr = instr, .begin = begin, .end = end});
}

void RunProfile::copied(std::string_view what, int64_t bytes, Time begin, Time end) {
  copies_.push_back({.what = std::string(what), .bytes = bytes, .begin = begin, .end = end});
}

void RunProfile::finishRun() {
  const BusyTimes busy = busyTimes();
  noteTimes(busy);
  noteSharing(busy);
  runs_ += 1;
}

RunProfile::BusyTimes RunProfile::busyTimes() const {
  BusyTimes busy;
  for (const std::vector<Event>& parts : parts_) {
    std::unordered_map<size_t, double> own;
    for (const Event& part : parts) own[part.instr] += microseconds(part.end - part.begin);
    for (const auto& [instr, time] : own) busy[instr].push_back(time);
  }
  return busy;
}

// The time of instructions side by side or chained, which is known of all together, is shared out as threads were busy
// with them.
void RunProfile::noteTimes(const BusyTimes& busy) {
  const auto workOn = [&](size_t instr) {
    const auto it = busy.find(instr);
    return it == busy.end() ? 0. : std::accumulate(it->second.begin(), it->second.end(), 0.);
  };
  for (size_t i = 0; i < events_.size(); ++i) {
    const size_t first = events_[i].instr;
    const double time = microseconds(events_[i].end - events_[i].begin) * 1e-6;
    const int group = lines_[first].group;
    const bool together = group != 0 && (i + 1 == events_.size() || lines_[events_[i + 1].instr].group != group) &&
                          (i == 0 || lines_[events_[i - 1].instr].group != group);
    size_t end = first + 1;
    while (together && end < lines_.size() && lines_[end].group == group) ++end;
    double all = 0;
    for (size_t instr = first; instr < end; ++instr) all += workOn(instr);
    for (size_t instr = first; instr < end; ++instr)
      lines_[instr].times.push_back(all > 0 ? time * workOn(instr) / all : time / static_cast<double>(end - first));
  }
}

void RunProfile::noteSharing(const BusyTimes& busy) {
  for (Line& line : lines_) line.sharing = {};
  for (const auto& [instr, times] : busy) {
    const double sum = std::accumulate(times.begin(), times.end(), 0.), longest = std::ranges::max(times);
    const auto count = static_cast<int>(times.size());
    lines_[instr].sharing = {.threads = count, .balance = longest > 0 ? sum / count / longest : 1};
  }
}

std::vector<const RunProfile::Line*> RunProfile::sorted() const {
  std::vector<const Line*> lines;
  for (const Line& line : lines_)
    if (!line.marker) lines.push_back(&line);
  std::sort(lines.begin(), lines.end(),
            [](const Line* a, const Line* b) { return std::pair(-a->seconds(), a) < std::pair(-b->seconds(), b); });
  return lines;
}

}  // namespace aglow
