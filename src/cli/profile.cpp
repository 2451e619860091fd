#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
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
  for (const Instr& instr : program.instrs)
    lines_.push_back({.node = instr.origin,
                      .instruction = operatorsOf(instr),
                      .kernel = kernelOf(instr),
                      .cost = costOf(program, instr),
                      .marker = instr.isMarker()});
}

void Profile::startRun(int threads) {
  events_.resize(static_cast<size_t>(threads));
  for (std::vector<Event>& events : events_) {
    events.clear();
    events.reserve(lines_.size());
  }
  start_ = Clock::now();
}

void Profile::begin(size_t instr, int thread) {
  events_[static_cast<size_t>(thread)].push_back({.instr = instr, .begin = Clock::now(), .end = {}});
}

void Profile::end(size_t, int thread) { events_[static_cast<size_t>(thread)].back().end = Clock::now(); }

// An instruction takes from the first thread's beginning to the last one's end.
void Profile::finishRun() {
  std::unordered_map<size_t, Event> whole;
  for (const std::vector<Event>& events : events_)
    for (const Event& event : events) {
      Event& sum = whole.try_emplace(event.instr, event).first->second;
      sum.begin = std::min(sum.begin, event.begin);
      sum.end = std::max(sum.end, event.end);
    }
  for (const auto& [instr, event] : whole) lines_[instr].times.push_back(microseconds(event.end - event.begin) * 1e-6);
  runs_ += 1;
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
  std::string out = fmt::format("{:<44} {:<18} {:<9} {:>10} {:>6} {:>9} {:>6} {:>9} {:>8} {:>6}\n", "node",
                                "instruction", "kernel", "ms", "share", "GFLOP/s", "peak", "MB", "GB/s", "peak");
  double flops = 0, bytes = 0;
  const auto row = [&](const std::string& node, const std::string& instruction, const std::string& kernel,
                       const nlohmann::json& r) {
    out += fmt::format("{:<44} {:<18} {:<9} {:>10.4f} {:>5.1f}% {:>9.1f} {:>5.1f}% {:>9.2f} {:>8.1f} {:>5.1f}%\n",
                       shortened(node, 44), shortened(instruction, 18), kernel, r["ms"].get<double>(),
                       r["share"].get<double>() * 100, r["gflops"].get<double>(),
                       r["of_peak_flops"].get<double>() * 100, r["bytes"].get<double>() * 1e-6,
                       r["gbytes_per_s"].get<double>(), r["of_peak_bandwidth"].get<double>() * 100);
  };
  for (const nlohmann::json& line : all["instructions"]) {
    row(line["node"], line["instruction"], line["kernel"], line);
    flops += line["flops"].get<double>();
    bytes += line["bytes"].get<double>();
  }
  const double seconds = std::max(all["total_ms"].get<double>() * 1e-3, 1e-12);
  row("all", fmt::format("{} runs", runs_), "",
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

std::string Profile::trace() const {
  nlohmann::json rows = nlohmann::json::array();
  for (size_t thread = 0; thread < events_.size(); ++thread) {
    rows.push_back({{"ph", "M"},
                    {"name", "thread_name"},
                    {"pid", 1},
                    {"tid", thread},
                    {"args", {{"name", fmt::format("thread {}", thread)}}}});
    for (const Event& event : events_[thread]) {
      const Line& line = lines_[event.instr];
      if (line.marker) continue;
      rows.push_back({{"ph", "X"},
                      {"name", line.node.empty() ? line.instruction : line.node},
                      {"cat", line.instruction},
                      {"pid", 1},
                      {"tid", thread},
                      {"ts", microseconds(event.begin - start_)},
                      {"dur", microseconds(event.end - event.begin)},
                      {"args",
                       {{"instruction", event.instr},
                        {"kernel", line.kernel},
                        {"flops", line.cost.flops},
                        {"bytes", line.cost.bytes}}}});
    }
  }
  const nlohmann::json document = {{"traceEvents", rows}, {"displayTimeUnit", "ms"}};
  // Names that are not UTF-8 must not keep the file from being written.
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace aglow::cli
