#include "cli/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "inst/instr_names.h"

namespace aglow::cli {

namespace {

double microseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

}  // namespace

Profile::Profile(const Program& program, std::optional<Timeline> expected)
    : RunProfile(program), expected_(std::move(expected)) {}

nlohmann::json Profile::json(const MachinePeak& peak) const {
  const std::vector<const Line*> lines = sorted();
  double total = 0;
  for (const Line* line : lines) total += line->seconds();
  nlohmann::json rows = nlohmann::json::array();
  for (const Line* line : lines) {
    const double seconds = line->seconds(), perSecond = seconds > 0 ? 1 / seconds : 0;
    const double flops = line->cost.flops * perSecond, bytes = static_cast<double>(line->cost.bytes) * perSecond;
    rows.push_back({{"number", line - lines_.data()},
                    {"node", line->node},
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

// The instructions as the caller's thread sees them, and below, thread by thread, what was shared; then, as a process
// of its own, the engines of a device as they were expected to go.
std::string Profile::trace() const {
  nlohmann::json rows = nlohmann::json::array();
  const auto called = [&](const char* what, int process, size_t number, const std::string& name) {
    rows.push_back({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", number}, {"args", {{"name", name}}}});
  };
  const auto row = [&](int process, size_t number, size_t instr, double begin, double end) {
    const Line& line = lines_[instr];
    rows.push_back(
        {{"ph", "X"},
         {"name", line.node.empty() ? line.instruction : line.node},
         {"cat", line.instruction},
         {"pid", process},
         {"tid", number},
         {"ts", begin},
         {"dur", end - begin},
         {"args",
          {{"instruction", instr}, {"kernel", line.kernel}, {"flops", line.cost.flops}, {"bytes", line.cost.bytes}}}});
  };
  const auto track = [&](size_t number, const std::string& name, const std::vector<Event>& events) {
    called("thread_name", 1, number, name);
    for (const Event& event : events)
      if (!lines_[event.instr].marker)
        row(1, number, event.instr, microseconds(event.begin - start_), microseconds(event.end - start_));
  };
  track(0, "instructions", events_);
  for (size_t thread = 0; thread < parts_.size(); ++thread)
    if (!parts_[thread].empty()) track(thread + 1, fmt::format("thread {}", thread), parts_[thread]);
  const size_t copies = parts_.size() + 1;
  if (!copies_.empty()) track(copies, "copies", {});
  for (const Copy& copy : copies_)
    rows.push_back({{"ph", "X"},
                    {"name", copy.what},
                    {"cat", "copy"},
                    {"pid", 1},
                    {"tid", copies},
                    {"ts", microseconds(copy.begin - start_)},
                    {"dur", microseconds(copy.end - copy.begin)},
                    {"args", {{"bytes", copy.bytes}}}});
  if (expected_) {
    called("process_name", 2, 0, "expected of the device");
    called("thread_name", 2, 0, "compute");
    called("thread_name", 2, 1, "copies");
    for (const Timeline::Row& one : expected_->rows)
      row(2, one.engine == Timeline::Engine::Copy ? 1 : 0, one.instr, one.begin * 1e6, one.end * 1e6);
  }
  const nlohmann::json document = {{"traceEvents", rows}, {"displayTimeUnit", "ms"}};
  // Names that are not UTF-8 must not keep the file from being written.
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace aglow::cli
