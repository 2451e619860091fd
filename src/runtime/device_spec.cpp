#include "runtime/device_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "compile/compile.h"
#include "support/quote.h"

namespace aglow {

namespace {

Error wrong(std::string_view text, const std::string& why) {
  return Error{.code = Code::Usage,
               .message = fmt::format("device {}: {}", quoted(text), why),
               .where = {},
               .hint = "cpu:0-3,memory=2G or interpreter or opencl:0/0 or sim:cpu,memory=64M,latency=50us,copy=1G"};
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// A number with a unit of a table after it.
struct Scale {
  std::string_view unit;
  double factor;
};
constexpr Scale kCounts[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
constexpr Scale kBytes[] = {{"", 1}, {"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}};
constexpr Scale kNanoseconds[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

template <size_t N>
Result<double> quantity(std::string_view text, const Scale (&scales)[N], double most) {
  double number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  for (const Scale& scale : scales)
    if (fault == std::errc() && unit == scale.unit && number >= 0 && number * scale.factor <= most)
      return number * scale.factor;
  std::string units;
  for (const Scale& scale : scales) units += fmt::format("{}{}", units.empty() ? "" : ", ", quoted(scale.unit));
  return Error{
      .code = Code::Usage,
      .message = fmt::format("{} is no number from 0 to {:g} with one of the units {}", quoted(text), most, units)};
}

bool number(std::string_view text, int& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() && value >= 0;
}

// "0-3", "5"
bool addCores(std::string_view text, std::vector<int>& cores) {
  constexpr int kMostCores = 4096;
  const size_t dash = text.find('-');
  int first = 0, last = 0;
  if (!number(text.substr(0, dash), first)) return false;
  last = first;
  if (dash != std::string_view::npos && !number(text.substr(dash + 1), last)) return false;
  if (last < first || last >= kMostCores) return false;
  for (int core = first; core <= last; ++core) cores.push_back(core);
  return true;
}

Status setOption(DeviceSpec& spec, std::string_view name, std::string_view value) {
  const auto simulated = [&]() -> Result<Simulation*> {
    if (spec.simulation) return &*spec.simulation;
    return Error{.code = Code::Usage, .message = fmt::format("{} is for devices that are simulated", quoted(name))};
  };
  if (name == "name") {
    spec.name = std::string(value);
  } else if (name == "memory") {
    AGLOW_TRY(const double bytes, quantity(value, kBytes, 0x1p50));
    spec.memory = static_cast<int64_t>(bytes);
  } else if (name == "lanes") {
    AGLOW_TRY(const double lanes, quantity(value, kCounts, 1024));
    spec.lanes = static_cast<int>(lanes);
  } else if (name == "queue") {
    AGLOW_TRY(const double queue, quantity(value, kCounts, 1e6));
    spec.queue = static_cast<size_t>(queue);
  } else if (name == "latency") {
    AGLOW_TRY(Simulation* const simulation, simulated());
    AGLOW_TRY(const double latency, quantity(value, kNanoseconds, 1e12));
    simulation->latency = std::chrono::nanoseconds(static_cast<int64_t>(latency));
  } else if (name == "fails" || name == "repair") {
    AGLOW_TRY(Simulation* const simulation, simulated());
    AGLOW_TRY(const double time, quantity(value, kNanoseconds, 1e15));
    (name == "fails" ? simulation->fails : simulation->repair) = std::chrono::nanoseconds(static_cast<int64_t>(time));
  } else if (name == "copy") {
    AGLOW_TRY(Simulation* const simulation, simulated());
    AGLOW_TRY(simulation->bytesPerSecond, quantity(value, kBytes, 0x1p60));
  } else if (name == "speed") {
    AGLOW_TRY(Simulation* const simulation, simulated());
    AGLOW_TRY(simulation->flopsPerSecond, quantity(value, kCounts, 1e21));
  } else if (name == "without") {
    AGLOW_TRY(Simulation* const simulation, simulated());
    for (const std::string_view op : split(value, "+")) simulation->without.emplace_back(op);
  } else {
    return Error{
        .code = Code::Usage,
        .message = fmt::format("there is no option {}; there are name, memory, lanes, queue, and for simulated "
                               "devices latency, copy, speed, without, fails, repair",
                               quoted(name))};
  }
  return {};
}

}  // namespace

Result<DeviceSpec> parseDevice(std::string_view text) {
  DeviceSpec spec;
  std::vector<std::string_view> words = split(text, ",");
  if (words.empty()) return wrong(text, "it is empty");
  const std::string_view what = words.front();
  const size_t colon = what.find(':');
  const std::string_view kind = what.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : what.substr(colon + 1);
  const bool cores = kind == "cpu" && !rest.empty();
  if (kind == "sim") {
    spec.simulation.emplace();
    spec.backend = std::string(rest.empty() ? defaultBackend() : rest);
  } else if (cores) {
    spec.backend = "cpu";
    if (!addCores(rest, spec.cores)) return wrong(text, fmt::format("{} are no cores", quoted(rest)));
  } else {
    spec.backend = std::string(what);
  }
  spec.name = std::string(what);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string_view::npos) {
      if (cores && addCores(words[i], spec.cores)) {
        spec.name += fmt::format(",{}", words[i]);
        continue;
      }
      return wrong(text, fmt::format("{} is no option", quoted(words[i])));
    }
    if (Status set = setOption(spec, words[i].substr(0, equals), words[i].substr(equals + 1)); !set.ok())
      return wrong(text, set.error().message);
  }
  if (std::set<int>(spec.cores.begin(), spec.cores.end()).size() != spec.cores.size())
    return wrong(text, "it names a core twice");
  return spec;
}

Result<std::vector<DeviceSpec>> parseDevices(std::string_view text) {
  std::vector<DeviceSpec> specs;
  std::set<std::string> names;
  std::set<int> cores;
  for (const std::string_view word : split(text, " ;")) {
    AGLOW_TRY(DeviceSpec spec, parseDevice(word));
    const bool named = word.find("name=") != std::string_view::npos;
    if (named && names.contains(spec.name)) return wrong(word, "another one has the same name");
    for (int i = 1; names.contains(spec.name); ++i) {
      const std::string base = spec.name.substr(0, spec.name.find('#'));
      spec.name = fmt::format("{}#{}", base, i);
    }
    names.insert(spec.name);
    for (const int core : spec.cores)
      if (!cores.insert(core).second) return wrong(word, fmt::format("core {} belongs to another device", core));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace aglow
