#include "cli/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/device_backend.h"
#include "inst/banks.h"

namespace aglow::cli {

namespace {

std::vector<Timeline::Row> copiesOf(const Timeline& timeline) {
  std::vector<Timeline::Row> copies;
  for (const Timeline::Row& row : timeline.rows)
    if (row.engine == Timeline::Engine::Copy) copies.push_back(row);
  return copies;
}

const Region& destination(const Program& program, const Timeline::Row& copy) {
  return program[program.instrs[copy.instr].operands[0].region];
}

bool toDevice(const Program& program, const Timeline::Row& copy) {
  return program[program.extent(program.instrs[copy.instr].operands[0].region).root].as<Allocated>() != nullptr;
}

// Weights and state that need not travel.
int64_t stayingBytes(const Program& program) {
  const Banks banks(program);
  int64_t bytes = 0;
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].declared() && !banks.inHost(static_cast<RegionId>(i)))
      bytes += program.regions[i].type.bytes();
  return bytes;
}

}  // namespace

std::optional<Timeline> timelineOf(const Program& program, const Backend& backend) {
  const auto* device = dynamic_cast<const DeviceBackend*>(&backend);
  if (device == nullptr) return {};
  Timeline timeline = simulate(program, device->latencies());
  if (copiesOf(timeline).empty()) return {};
  return timeline;
}

std::string transfersText(const Program& program, const Timeline& timeline) {
  constexpr size_t kShown = 20;
  std::vector<Timeline::Row> copies = copiesOf(timeline);
  int64_t bytes = 0;
  for (const Timeline::Row& copy : copies) bytes += destination(program, copy).type.bytes();
  const int64_t staying = stayingBytes(program);
  std::string out = fmt::format(
      "\non device   {:>14} bytes: the arena, and {} of weights and state that stay\ntransfers   {:>14} bytes in {} "
      "copies\nestimated   {:>14.3f} ms for a run, {:.3f} ms of copies, {:.1f}% of "
      "them hidden\n\nlargest copies:\n{:>12} {:>10} {:>10} {:>10}  from {:<6} name\n",
      program.arenaBytes + staying, staying, bytes, copies.size(), timeline.seconds * 1e3, timeline.copySeconds * 1e3,
      timeline.hidden() * 100, "bytes", "begins ms", "ends ms", "exposed", "");
  std::sort(copies.begin(), copies.end(), [&](const Timeline::Row& a, const Timeline::Row& b) {
    const int64_t x = destination(program, a).type.bytes(), y = destination(program, b).type.bytes();
    return std::pair(-x, a.instr) < std::pair(-y, b.instr);
  });
  for (size_t i = 0; i < std::min(copies.size(), kShown); ++i)
    out +=
        fmt::format("{:>12} {:>10.3f} {:>10.3f} {:>10.3f}  {:<11} {}\n", destination(program, copies[i]).type.bytes(),
                    copies[i].begin * 1e3, copies[i].end * 1e3, copies[i].exposed * 1e3,
                    toDevice(program, copies[i]) ? "host" : "device", program.instrs[copies[i].instr].origin);
  return out;
}

nlohmann::json transfersJson(const Program& program, const Timeline& timeline) {
  nlohmann::json json = {{"ms", timeline.seconds * 1e3},
                         {"copy_ms", timeline.copySeconds * 1e3},
                         {"exposed_ms", timeline.exposedSeconds * 1e3},
                         {"hidden", timeline.hidden()},
                         {"device_bytes", program.arenaBytes + stayingBytes(program)}};
  for (const Timeline::Row& copy : copiesOf(timeline))
    json["copies"].push_back({{"name", program.instrs[copy.instr].origin},
                              {"bytes", destination(program, copy).type.bytes()},
                              {"from", toDevice(program, copy) ? "host" : "device"},
                              {"begin_ms", copy.begin * 1e3},
                              {"end_ms", copy.end * 1e3},
                              {"exposed_ms", copy.exposed * 1e3}});
  return json;
}

}  // namespace aglow::cli
