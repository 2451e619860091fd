// Which unit goes into which part: exact along an order of the units, then improved by moving single ones.
#include "runtime/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "runtime/partition_build.h"
#include "runtime/partition_graph.h"
#include "runtime/partition_order.h"
#include "support/quote.h"

namespace aglow {

namespace {

// Phases after which a function can be cut.
constexpr std::string_view kAfterRules = "optimize-core", kBeforeInstructions = "schedule";

constexpr std::array<std::string_view, 5> kCriteria = {"memory", "time", "communication", "pipeline", "support"};

// Less is better; the second counts where the first are equal.
struct Price {
  double first = 0, second = 0;
  auto operator<=>(const Price&) const = default;
};
constexpr double kNever = std::numeric_limits<double>::infinity();

const PartitionDevice& anyDevice() {
  static const PartitionDevice device;
  return device;
}

// The device of a part; where there are more parts than devices, any of these.
const PartitionDevice& deviceOf(const PartitionRequest& request, size_t part, size_t parts) {
  return parts <= request.devices.size() ? request.devices[part] : anyDevice();
}

bool fits(int64_t bytes, const PartitionDevice& device) { return device.memory == 0 || bytes <= device.memory; }

double microseconds(const PartEstimate& part, const PartitionDevice& device) {
  return device.flopsPerSecond > 0 ? part.flops / device.flopsPerSecond * 1e6 : part.microseconds;
}

double copyMicroseconds(double bytes, const PartitionDevice& device) {
  return bytes > 0 ? device.latencyMicroseconds + bytes / device.bytesPerSecond * 1e6 : 0;
}

bool takesLargest(PartitionCriterion criterion) {
  return criterion == PartitionCriterion::Memory || criterion == PartitionCriterion::Pipeline;
}

// What one part adds to the price of a partition.
Price priceOf(const PartEstimate& part, const PartitionDevice& device, PartitionCriterion criterion) {
  const auto sent = static_cast<double>(part.inBytes);
  const double time = microseconds(part, device) + copyMicroseconds(sent, device) +
                      copyMicroseconds(static_cast<double>(part.outBytes), device);
  switch (criterion) {
    case PartitionCriterion::Memory:
      return {static_cast<double>(part.bytes()), sent};
    case PartitionCriterion::Pipeline:
      return {time, sent};
    case PartitionCriterion::Communication:
      return {sent, time};
    case PartitionCriterion::Time:
    case PartitionCriterion::Support:
      return {time, sent};
  }
  return {};
}

Price together(Price a, Price b, PartitionCriterion criterion) {
  if (takesLargest(criterion)) return {std::max(a.first, b.first), a.second + b.second};
  if (criterion == PartitionCriterion::Communication) return {a.first + b.first, std::max(a.second, b.second)};
  return {a.first + b.first, a.second + b.second};
}

// The price of a whole partition, from what its parts really need. Time follows the slowest way through them.
Price priceOf(const PartitionGraph& graph, const std::vector<size_t>& labels, size_t parts,
              const PartitionRequest& request) {
  const std::vector<PartEstimate> estimates = estimateParts(graph, labels, parts);
  Price price;
  for (size_t i = 0; i < parts; ++i) {
    const PartitionDevice& device = deviceOf(request, i, parts);
    if (!fits(estimates[i].bytes(), device)) return {kNever, kNever};
    price = together(price, priceOf(estimates[i], device, request.criterion), request.criterion);
  }
  if (request.criterion != PartitionCriterion::Time) return price;
  std::vector<double> ends(parts, 0), begins(parts, 0);
  for (size_t part = 0; part < parts; ++part) {
    for (const PartitionValue& value : graph.values)
      for (const size_t reader : value.readers)
        if (labels[reader] == part && labels[value.maker] != part)
          begins[part] = std::max(begins[part], ends[labels[value.maker]]);
    ends[part] = begins[part] + priceOf(estimates[part], deviceOf(request, part, parts), request.criterion).first;
  }
  price.first = *std::max_element(ends.begin(), ends.end());
  return price;
}

// ---------------------------------------------------------------- along an order

// What all segments of an order need, each in constant time. Exact for chains, where only neighbours share values.
class Segments {
public:
  Segments(const PartitionGraph& graph, const std::vector<size_t>& order) {
    const size_t count = order.size();
    std::vector<size_t> position(count);
    for (size_t i = 0; i < count; ++i) position[order[i]] = i;
    time_.assign(count + 1, 0);
    flops_.assign(count + 1, 0);
    constants_.assign(count + 1, 0);
    crossing_.assign(count + 1, 0);
    std::vector<int64_t> live(count + 1, 0);
    std::vector<bool> seen(graph.constantBytes.size(), false);
    for (size_t i = 0; i < count; ++i) {
      const PartitionUnit& unit = graph.units[order[i]];
      time_[i + 1] = time_[i] + unit.microseconds;
      flops_[i + 1] = flops_[i] + unit.flops;
      constants_[i + 1] = constants_[i];
      for (const size_t constant : unit.constants)
        if (!seen[constant]) {
          seen[constant] = true;
          constants_[i + 1] += graph.constantBytes[constant];
        }
    }
    std::vector<int64_t> change(count + 1, 0);
    for (const PartitionValue& value : graph.values) {
      size_t last = position[value.maker];
      for (const size_t reader : value.readers) last = std::max(last, position[reader]);
      change[position[value.maker]] += value.bytes;
      change[last + 1] -= value.bytes;
      for (size_t cut = position[value.maker] + 1; cut <= last; ++cut) crossing_[cut] += value.bytes;
    }
    int64_t now = 0;
    std::vector<int64_t> most(count, 0);
    for (size_t i = 0; i < count; ++i) {
      now += change[i];
      most[i] = std::max(now, graph.resultBytes[order[i]]);
    }
    largest_.push_back(std::move(most));
    for (size_t width = 1; width * 2 <= count; width *= 2) {
      const std::vector<int64_t>& before = largest_.back();
      std::vector<int64_t> next(count - width * 2 + 1);
      for (size_t i = 0; i < next.size(); ++i) next[i] = std::max(before[i], before[i + width]);
      largest_.push_back(std::move(next));
    }
  }

  size_t size() const { return time_.size() - 1; }
  int64_t crossing(size_t cut) const { return crossing_[cut]; }
  // From unit `first` up to, not including, `last`.
  PartEstimate estimate(size_t first, size_t last) const {
    PartEstimate part;
    part.microseconds = time_[last] - time_[first];
    part.flops = flops_[last] - flops_[first];
    part.constantBytes = constants_[last] - constants_[first];
    const auto level = static_cast<size_t>(std::bit_width(last - first)) - 1;
    part.arenaBytes = std::max(largest_[level][first], largest_[level][last - (size_t{1} << level)]);
    part.inBytes = crossing_[first];
    part.outBytes = crossing_[last];
    return part;
  }

private:
  std::vector<double> time_, flops_;
  std::vector<int64_t> constants_, crossing_;  // by cut
  std::vector<std::vector<int64_t>> largest_;  // by power of two and unit
};

// Where an order may be cut: anywhere, or, of a long one, where little crosses.
std::vector<size_t> cutsOf(const Segments& segments) {
  constexpr size_t kMost = 1200;
  const size_t count = segments.size();
  std::vector<size_t> cuts;
  const size_t window = (count + kMost - 1) / kMost;
  for (size_t from = 1; from < count; from += window) {
    size_t best = from;
    for (size_t cut = from; cut < std::min(from + window, count); ++cut)
      if (segments.crossing(cut) < segments.crossing(best)) best = cut;
    cuts.push_back(best);
  }
  cuts.insert(cuts.begin(), 0);
  cuts.push_back(count);
  return cuts;
}

// The best cut of an order into so many segments, by dynamic programming: for each number of parts and each cut the
// best way to get there. Empty where nothing fits.
std::vector<size_t> cutOrder(const PartitionGraph& graph, const std::vector<size_t>& order, size_t parts,
                             const PartitionRequest& request) {
  const Segments segments(graph, order);
  const std::vector<size_t> cuts = cutsOf(segments);
  const Price never{kNever, kNever};
  std::vector<Price> best(cuts.size(), never);
  best[0] = {};
  std::vector<std::vector<size_t>> from(parts, std::vector<size_t>(cuts.size(), 0));
  for (size_t part = 0; part < parts; ++part) {
    const PartitionDevice& device = deviceOf(request, part, parts);
    std::vector<Price> next(cuts.size(), never);
    for (size_t j = part + 1; j < cuts.size(); ++j)
      for (size_t i = part; i < j; ++i) {
        if (best[i].first == kNever) continue;
        const PartEstimate estimate = segments.estimate(cuts[i], cuts[j]);
        if (!fits(estimate.bytes(), device)) continue;
        const Price price = together(best[i], priceOf(estimate, device, request.criterion), request.criterion);
        if (price < next[j]) {
          next[j] = price;
          from[part][j] = i;
        }
      }
    best = std::move(next);
  }
  if (best.back().first == kNever) return {};
  std::vector<size_t> labels(order.size());
  size_t end = cuts.size() - 1;
  for (size_t part = parts; part-- > 0;) {
    const size_t begin = from[part][end];
    for (size_t i = cuts[begin]; i < cuts[end]; ++i) labels[order[i]] = part;
    end = begin;
  }
  return labels;
}

// Another order: one branch to its end before the next begins.
std::vector<size_t> depthFirst(const PartitionGraph& graph) {
  std::vector<size_t> missing(graph.units.size()), ready, order;
  for (size_t i = graph.units.size(); i-- > 0;) {
    missing[i] = graph.readsOf[i].size();
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const size_t unit = ready.back();
    ready.pop_back();
    order.push_back(unit);
    for (const size_t value : graph.valuesOf[unit])
      for (const size_t reader : graph.values[value].readers)
        if (--missing[reader] == 0) ready.push_back(reader);
  }
  return order;
}

// ---------------------------------------------------------------- single moves

// The labels that a unit may have beside its own: not below what it reads, not above what reads it.
std::pair<size_t, size_t> roomOf(const PartitionGraph& graph, const std::vector<size_t>& labels, size_t unit,
                                 size_t parts) {
  size_t low = 0, high = parts - 1;
  for (const size_t value : graph.readsOf[unit]) low = std::max(low, labels[graph.values[value].maker]);
  for (const size_t value : graph.valuesOf[unit])
    for (const size_t reader : graph.values[value].readers) high = std::min(high, labels[reader]);
  return {low, high};
}

void improve(const PartitionGraph& graph, std::vector<size_t>& labels, size_t parts, const PartitionRequest& request) {
  constexpr size_t kMostWork = 20'000'000;
  size_t trials = kMostWork / (graph.units.size() + graph.values.size() + 1);
  std::vector<size_t> sizes(parts, 0);
  for (const size_t label : labels) ++sizes[label];
  Price best = priceOf(graph, labels, parts, request);
  for (bool better = true; better && trials > 0;) {
    better = false;
    for (size_t unit = 0; unit < labels.size() && trials > 0; ++unit) {
      const auto [low, high] = roomOf(graph, labels, unit, parts);
      const size_t own = labels[unit];
      for (const size_t label : {own > low ? own - 1 : own, own < high ? own + 1 : own}) {
        if (label == labels[unit] || sizes[labels[unit]] == 1) continue;
        const size_t before = labels[unit];
        labels[unit] = label;
        --trials;
        const Price price = priceOf(graph, labels, parts, request);
        if (price < best) {
          best = price;
          better = true;
          --sizes[before];
          ++sizes[label];
        } else {
          labels[unit] = before;
        }
        if (trials == 0) break;
      }
    }
  }
}

std::vector<size_t> cutInto(const PartitionGraph& graph, size_t parts, const PartitionRequest& request) {
  std::vector<size_t> natural(graph.units.size());
  for (size_t i = 0; i < natural.size(); ++i) natural[i] = i;
  std::vector<size_t> best;
  Price bestPrice{kNever, kNever};
  for (const std::vector<size_t>& order : {natural, depthFirst(graph)}) {
    std::vector<size_t> labels = cutOrder(graph, order, parts, request);
    if (labels.empty()) continue;
    improve(graph, labels, parts, request);
    const Price price = priceOf(graph, labels, parts, request);
    if (best.empty() || price < bestPrice) {
      best = std::move(labels);
      bestPrice = price;
    }
  }
  if (bestPrice.first == kNever) return {};
  return best;
}

// ---------------------------------------------------------------- by what each unit asks for

// Each unit has a device; parts alternate between these, and each unit goes into the first that it may.
std::vector<size_t> labelsOfDevices(const PartitionGraph& graph, const std::vector<size_t>& devices, size_t count) {
  std::vector<size_t> labels(graph.units.size());
  for (size_t unit = 0; unit < labels.size(); ++unit) {
    size_t low = 0;
    for (const size_t value : graph.readsOf[unit]) low = std::max(low, labels[graph.values[value].maker]);
    labels[unit] = low + (devices[unit] + count - low % count) % count;
  }
  return labels;
}

// The reason why a device cannot run a unit; empty where it can.
std::string whyNot(const PartitionUnit& unit, const PartitionDevice& device, const Backend& backend) {
  for (const Node* node : unit.nodes) {
    if (node->op() == Op::Save) continue;
    if (std::find(device.without.begin(), device.without.end(), node->def().name) != device.without.end())
      return fmt::format("{} ({}): {} does not have it", quoted(node->name()), node->def().name, device.name);
    if (const Decision taken = backend.supports(*node); !taken)
      return fmt::format("{} ({}): {}", quoted(node->name()), node->def().name, taken.reason());
  }
  return {};
}

Result<std::vector<size_t>> devicesBySupport(const PartitionGraph& graph, const PartitionRequest& request,
                                             std::vector<std::string>& calledOut) {
  std::vector<std::shared_ptr<const Backend>> backends;
  for (const PartitionDevice& device : request.devices) {
    CompileOptions options;
    options.backend = device.backend;
    AGLOW_TRY(backends.emplace_back(), makeBackend(options));
  }
  std::vector<size_t> devices(graph.units.size(), 0);
  for (size_t unit = 0; unit < devices.size(); ++unit) {
    std::string reasons;
    for (size_t device = 0; device <= request.devices.size(); ++device) {
      if (device == request.devices.size())
        return Error{.code = Code::UnsupportedOp, .message = fmt::format("no device can run {}", reasons)};
      const std::string why = whyNot(graph.units[unit], request.devices[device], *backends[device]);
      if (why.empty()) {
        devices[unit] = device;
        break;
      }
      reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", why);
    }
    if (!reasons.empty())
      calledOut.push_back(fmt::format("{}; goes to {}", reasons, request.devices[devices[unit]].name));
  }
  return devices;
}

// Nodes of a unit stay together: the first one that is named decides, which is the anchor of what runs as one.
Result<std::vector<size_t>> devicesByHand(const PartitionGraph& graph, const PartitionRequest& request,
                                          std::vector<std::string>& calledOut) {
  std::map<std::string, size_t, std::less<>> numbers;
  std::string names;
  for (size_t i = 0; i < request.devices.size(); ++i) {
    numbers[request.devices[i].name] = i;
    names += (names.empty() ? "" : ", ") + request.devices[i].name;
  }
  for (const auto& [node, device] : request.byHand)
    if (!numbers.contains(device))
      return Error{.code = Code::Usage,
                   .message = fmt::format("the plan sends {} to {}, which is no device; there are {}", quoted(node),
                                          quoted(device), names),
                   .where = {},
                   .hint = "devices are named with name=NAME"};
  std::vector<std::optional<size_t>> named(graph.units.size());
  std::set<std::string_view> used;
  for (size_t unit = 0; unit < named.size(); ++unit) {
    const Node* first = nullptr;
    for (const Node* node : graph.units[unit].nodes) {
      const auto found = findNode(request.byHand, node->name());
      if (found == request.byHand.end()) continue;
      used.insert(found->first);
      const size_t device = numbers.at(found->second);
      if (!named[unit]) {
        named[unit] = device;
        first = node;
      } else if (*named[unit] != device) {
        calledOut.push_back(fmt::format("{} goes to {} with {}: they run as one, or touch the same state",
                                        quoted(node->name()), request.devices[*named[unit]].name,
                                        quoted(first->name())));
      }
    }
  }
  if (used.empty())
    return Error{.code = Code::Usage,
                 .message = "the plan names no node of the model",
                 .where = {},
                 .hint = "names are those that `aglow partition --json` lists"};
  for (const auto& [node, device] : request.byHand)
    if (!used.contains(node))
      calledOut.push_back(fmt::format("{} is no node of what is cut: the plan says nothing by it", quoted(node)));
  // What has no place goes with what it reads, else with what reads it.
  for (size_t unit = 0; unit < named.size(); ++unit)
    for (const size_t value : graph.readsOf[unit])
      if (!named[unit]) named[unit] = named[graph.values[value].maker];
  for (size_t unit = named.size(); unit-- > 0;)
    for (const size_t value : graph.valuesOf[unit])
      for (const size_t reader : graph.values[value].readers)
        if (!named[unit]) named[unit] = named[reader];
  std::vector<size_t> devices;
  for (const std::optional<size_t>& device : named) devices.push_back(device.value_or(0));
  return devices;
}

Error tooLarge(const PartitionGraph& graph, const PartitionRequest& request, size_t parts) {
  PartitionRequest free = request;
  free.criterion = PartitionCriterion::Memory;
  for (PartitionDevice& device : free.devices) device.memory = 0;
  const std::vector<size_t> labels = cutInto(graph, parts, free);
  std::string text;
  const std::vector<PartEstimate> estimates = estimateParts(graph, labels, parts);
  for (size_t i = 0; i < parts; ++i) {
    const PartitionDevice& device = deviceOf(request, i, parts);
    if (fits(estimates[i].bytes(), device)) continue;
    text += fmt::format("; {} has {} bytes, {} too few for {} bytes of weights and {} of values", device.name,
                        device.memory, estimates[i].bytes() - device.memory, estimates[i].constantBytes,
                        estimates[i].arenaBytes);
  }
  return {.code = Code::TooLarge,
          .message = fmt::format("in {} parts, as even as can be, it does not fit{}", parts, text),
          .where = {},
          .hint = "more devices, or devices with more memory"};
}

}  // namespace

Result<PartitionCriterion> criterionOf(std::string_view name) {
  const auto found = std::find(kCriteria.begin(), kCriteria.end(), name);
  if (found != kCriteria.end()) return static_cast<PartitionCriterion>(found - kCriteria.begin());
  return Error{
      .code = Code::Usage,
      .message = fmt::format("there is no criterion {}; there are {}", quoted(name), fmt::join(kCriteria, ", "))};
}

std::string_view criterionName(PartitionCriterion criterion) { return kCriteria[static_cast<size_t>(criterion)]; }

PartitionDevice partitionDeviceOf(const DeviceSpec& spec) {
  PartitionDevice device{.name = spec.name, .backend = spec.backend, .memory = spec.memory};
  if (!spec.simulation) return device;
  device.latencyMicroseconds = std::chrono::duration<double, std::micro>(spec.simulation->latency).count();
  if (spec.simulation->bytesPerSecond > 0) device.bytesPerSecond = spec.simulation->bytesPerSecond;
  device.flopsPerSecond = spec.simulation->flopsPerSecond;
  device.without = spec.simulation->without;
  return device;
}

std::string_view partitionPhase(const PartitionRequest& request) {
  const auto isLikeFirst = [&](const PartitionDevice& device) {
    return device.backend == request.devices.front().backend && device.without == request.devices.front().without;
  };
  const bool alike = std::all_of(request.devices.begin(), request.devices.end(), isLikeFirst) &&
                     request.criterion != PartitionCriterion::Support;
  return alike && !request.portable ? kBeforeInstructions : kAfterRules;
}

Result<Partition> partition(const Compilation& compilation, const PartitionRequest& request,
                            const CompileOptions& options) {
  AGLOW_CHECK(compilation.module != nullptr, "only graphs can be cut");
  AGLOW_TRY(const size_t number, chooseFunction(compilation.functionNames(), {}));
  const Interface& interface = compilation.interfaces[number];
  const std::string_view phase = partitionPhase(request);
  WholeFunction whole{.module = moduleOf(*compilation.module->findFunction(interface.function)), .fusedNodes = {}};
  if (phase == kBeforeInstructions) AGLOW_OK(putInOrder(whole, options));
  const Function& function = *whole.module->functions().front();
  const PartitionGraph graph = partitionGraphOf(function, request.measured, whole.fusedNodes.get());
  if (graph.units.empty()) return Error{.code = Code::BadGraph, .message = "there is nothing to cut"};
  std::vector<std::string> calledOut;
  std::vector<size_t> labels;
  std::vector<std::string> names;  // of the devices, by label
  const bool pinned = !request.byHand.empty() || request.criterion == PartitionCriterion::Support;
  if (pinned) {
    if (request.devices.empty()) return Error{.code = Code::Usage, .message = "devices have to be named for this"};
    AGLOW_TRY(const std::vector<size_t> devices, request.byHand.empty() ? devicesBySupport(graph, request, calledOut)
                                                                        : devicesByHand(graph, request, calledOut));
    labels = labelsOfDevices(graph, devices, request.devices.size());
    const size_t most = *std::max_element(labels.begin(), labels.end()) + 1;
    for (size_t i = 0; i < most; ++i) names.push_back(request.devices[i % request.devices.size()].name);
  } else {
    const size_t most =
        std::min(graph.units.size(), request.devices.empty() ? graph.units.size() : request.devices.size());
    size_t parts = std::min(request.parts > 0 ? request.parts : size_t{1}, graph.units.size());
    labels = cutInto(graph, parts, request);
    while (labels.empty() && request.parts == 0 && parts < most) labels = cutInto(graph, ++parts, request);
    if (labels.empty()) return tooLarge(graph, request, parts);
    for (size_t i = 0; i < parts; ++i) names.push_back(deviceOf(request, i, parts).name);
  }
  AGLOW_TRY(Partition made, buildPartition(function, interface, graph, std::move(labels), std::move(names), pinned,
                                           std::move(calledOut)));
  made.phase = phase;
  made.fusedNodes = std::move(whole.fusedNodes);
  return made;
}

}  // namespace aglow
