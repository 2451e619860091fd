#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "cli/instr_names.h"

namespace aglow::cli {

namespace {

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

double Profile::Line::seconds() const {
  if (times.empty()) return 0;
  std::vector<double> sorted = times;
  std::nth_element(sorted.begin(), sorted.begin() + std::ssize(sorted) / 2, sorted.end());
  return sorted[sorted.size() / 2];
}

Profile::Profile(const Program& program) {
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

void Profile::startRun(int threads) {
  events_.clear();
  events_.reserve(lines_.size());
  parts_.resize(static_cast<size_t>(threads));
  for (std::vector<Event>& parts : parts_) parts.clear();
  start_ = Clock::now();
}

void Profile::begin(size_t instr) { events_.push_back({.instr = instr, .begin = Clock::now(), .end = {}}); }

void Profile::end(size_t) { events_.back().end = Clock::now(); }

void Profile::part(size_t instr, int thread, Time begin, Time end) {
  parts_[static_cast<size_t>(thread)].push_back({.instr = instr, .begin = begin, .end = end});
}

void Profile::finishRun() {
  const BusyTimes busy = busyTimes();
  noteTimes(busy);
  noteSharing(busy);
  runs_ += 1;
}

Profile::BusyTimes Profile::busyTimes() const {
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
void Profile::noteTimes(const BusyTimes& busy) {
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

void Profile::noteSharing(const BusyTimes& busy) {
  for (Line& line : lines_) line.sharing = {};
  for (const auto& [instr, times] : busy) {
    const double sum = std::accumulate(times.begin(), times.end(), 0.), longest = std::ranges::max(times);
    const auto count = static_cast<int>(times.size());
    lines_[instr].sharing = {.threads = count, .balance = longest > 0 ? sum / count / longest : 1};
  }
}

std::vector<const Profile::Line*> Profile::sorted() const {
  std::vector<const Line*> lines;
  for (const Line& line : lines_)
    if (!line.marker) lines.push_back(&line);
  std::sort(lines.begin(), lines.end(),
            [](const Line* a, const Line* b) { return std::pair(-a->seconds(), a) < std::pair(-b->seconds(), b); });
  return lines;
}

nlohmann::json Profile::json(const MachinePeak& peak) const {
  const std::vector<const Line*> lines = sorted();
  double total = 0;
  for (const Line* line : lines) total += line->seconds();
  nlohmann::json rows = nlohmann::json::array();
  for (const Line* line : lines) {
    const double seconds = line->seconds(), perSecond = seconds > 0 ? 1 / seconds : 0;
    const double flops = line->cost.flops * perSecond, bytes = static_cast<double>(line->cost.bytes) * perSecond;
    rows.push_back({{"node", line->node},
                    {"instruction", line->instruction},
                    {"kernel", line->kernel},
                    {"ms", seconds * 1e3},
                    {"share", total > 0 ? seconds / total : 0},
                    {"threads", line->sharing.threads},
                    {"balance", line->sharing.balance},
                    {"beside", line->chained ? 0 : line->group},
                    {"chain", line->chained ? line->group : 0},
                    {"flops", line->cost.flops},
                    {"bytes", line->cost.bytes},
                    {"gflops", flops * 1e-9},
                    {"gbytes_per_s", bytes * 1e-9},
                    {"of_peak_flops", flops / peak.flops},
                    {"of_peak_bandwidth", bytes / peak.bytesPerSecond}});
  }
  return {{"instructions", rows},
          {"runs", runs_},
          {"total_ms", total * 1e3},
          {"peak_gflops", peak.flops * 1e-9},
          {"peak_gbytes_per_s", peak.bytesPerSecond * 1e-9}};
}

std::string Profile::table(const MachinePeak& peak) const {
  const nlohmann::json all = json(peak);
  std::string out = fmt::format(
      "{:<44} {:<18} {:<9} {:>10} {:>6} {:>7} {:>5} {:>6} {:>5} {:>9} {:>6} {:>9} {:>8} {:>6}\n", "node", "instruction",
      "kernel", "ms", "share", "threads", "even", "beside", "chain", "GFLOP/s", "peak", "MB", "GB/s", "peak");
  double flops = 0, bytes = 0;
  const auto row = [&](const std::string& node, const std::string& instruction, const std::string& kernel,
                       const std::string& sharing, const nlohmann::json& r) {
    out += fmt::format(
        "{:<44} {:<18} {:<9} {:>10.4f} {:>5.1f}% {:>26} {:>9.1f} {:>5.1f}% {:>9.2f} {:>8.1f} {:>5.1f}%\n",
        shortened(node, 44), shortened(instruction, 18), kernel, r["ms"].get<double>(), r["share"].get<double>() * 100,
        sharing, r["gflops"].get<double>(), r["of_peak_flops"].get<double>() * 100, r["bytes"].get<double>() * 1e-6,
        r["gbytes_per_s"].get<double>(), r["of_peak_bandwidth"].get<double>() * 100);
  };
  for (const nlohmann::json& line : all["instructions"]) {
    const int threads = line["threads"].get<int>();
    const std::string even = threads > 1 ? fmt::format("{:.0f}%", line["balance"].get<double>() * 100) : "";
    const auto number = [&](const char* of) {
      const int group = line[of].get<int>();
      return group == 0 ? "" : std::to_string(group);
    };
    row(line["node"], line["instruction"], line["kernel"],
        fmt::format("{:>7} {:>5} {:>6} {:>5}", threads, even, number("beside"), number("chain")), line);
    flops += line["flops"].get<double>();
    bytes += line["bytes"].get<double>();
  }
  const double seconds = std::max(all["total_ms"].get<double>() * 1e-3, 1e-12);
  row("all", fmt::format("{} runs", runs_), "", "",
      {{"ms", all["total_ms"]},
       {"share", 1},
       {"bytes", bytes},
       {"gflops", flops / seconds * 1e-9},
       {"gbytes_per_s", bytes / seconds * 1e-9},
       {"of_peak_flops", flops / seconds / peak.flops},
       {"of_peak_bandwidth", bytes / seconds / peak.bytesPerSecond}});
  return out + fmt::format("machine's peak, measured: {:.1f} GFLOP/s, {:.1f} GB/s from memory\n", peak.flops * 1e-9,
                           peak.bytesPerSecond * 1e-9);
}

// The instructions as the caller's thread sees them, and below, thread by thread, what was shared.
std::string Profile::trace() const {
  nlohmann::json rows = nlohmann::json::array();
  const auto track = [&](size_t number, const std::string& name, const std::vector<Event>& events) {
    rows.push_back({{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", number}, {"args", {{"name", name}}}});
    for (const Event& event : events) {
      const Line& line = lines_[event.instr];
      if (line.marker) continue;
      rows.push_back({{"ph", "X"},
                      {"name", line.node.empty() ? line.instruction : line.node},
                      {"cat", line.instruction},
                      {"pid", 1},
                      {"tid", number},
                      {"ts", microseconds(event.begin - start_)},
                      {"dur", microseconds(event.end - event.begin)},
                      {"args",
                       {{"instruction", event.instr},
                        {"kernel", line.kernel},
                        {"flops", line.cost.flops},
                        {"bytes", line.cost.bytes}}}});
    }
  };
  track(0, "instructions", events_);
  for (size_t thread = 0; thread < parts_.size(); ++thread)
    if (!parts_[thread].empty()) track(thread + 1, fmt::format("thread {}", thread), parts_[thread]);
  const nlohmann::json document = {{"traceEvents", rows}, {"displayTimeUnit", "ms"}};
  // Names that are not UTF-8 must not keep the file from being written.
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace aglow::cli
