#include "runtime/provisioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "runtime/quiet_thread.h"
#include "support/quote.h"

namespace aglow {

Diagnosed<std::shared_ptr<CompiledPart>> CompiledParts::get(size_t part, const std::string& backend) {
  std::shared_ptr<Slot> slot;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& kept = slots_[{part, backend}];
    if (!kept) kept = std::make_shared<Slot>();
    slot = kept;
  }
  const std::lock_guard lock(slot->making);
  if (slot->made) return slot->made;
  auto made = source_->compile(part, backend);
  if (made.ok()) slot->made = *made;
  return made;
}

namespace {

// What keeps a part from a device, in words; empty where nothing does.
std::string whyNot(const NetworkPart& part, const DeviceManager& device, const DeviceLoad& load) {
  if (!device.healthy()) return "has failed";
  if (!part.device.empty() && part.device != device.name()) return fmt::format("is not {}", quoted(part.device));
  if (part.cost.bytes() > load.freeBytes)
    return fmt::format("has {} bytes free, {} too few", load.freeBytes, part.cost.bytes() - load.freeBytes);
  return {};
}

// Places for one network by search: large parts first, each on the device that is best for it, and back where what is
// left finds no room. The number of steps is bounded: what is not found then, is not tried for ever.
class Search {
public:
  Search(const PartGraph& graph, int replicas, const DeviceList& devices, std::vector<DeviceLoad> loads)
      : graph_(graph), devices_(devices), loads_(std::move(loads)) {
    places_.assign(static_cast<size_t>(replicas), std::vector<size_t>(graph.parts.size(), 0));
    users_.assign(devices.size(), std::vector<int>(static_cast<size_t>(replicas), 0));
    for (size_t replica = 0; replica < places_.size(); ++replica)
      for (size_t part = 0; part < graph.parts.size(); ++part) items_.emplace_back(replica, part);
    std::stable_sort(items_.begin(), items_.end(), [&](const auto& a, const auto& b) {
      return graph_.parts[a.second].cost.bytes() > graph_.parts[b.second].cost.bytes();
    });
  }

  bool run() { return place(0); }
  std::vector<std::vector<size_t>> places() && { return std::move(places_); }

private:
  static constexpr int kMostSteps = 100'000;

  bool place(size_t item) {
    if (item == items_.size()) return true;
    const auto [replica, number] = items_[item];
    const NetworkPart& part = graph_.parts[number];
    for (const size_t device : candidates(replica, part)) {
      if (++steps_ > kMostSteps) return false;
      loads_[device].freeBytes -= part.cost.bytes();
      loads_[device].microseconds += part.cost.microseconds;
      ++users_[device][replica];
      places_[replica][number] = device;
      if (place(item + 1)) return true;
      loads_[device].freeBytes += part.cost.bytes();
      loads_[device].microseconds -= part.cost.microseconds;
      --users_[device][replica];
    }
    return false;
  }

  // Best first: one that no other replica uses, then one that this replica does not use yet, then the least loaded,
  // then the tightest.
  std::vector<size_t> candidates(size_t replica, const NetworkPart& part) const {
    std::vector<size_t> order;
    for (size_t i = 0; i < devices_.size(); ++i)
      if (whyNot(part, *devices_[i], loads_[i]).empty()) order.push_back(i);
    const auto rank = [&](size_t i) {
      const int all = std::accumulate(users_[i].begin(), users_[i].end(), 0);
      const int own = users_[i][replica];
      return std::tuple(all - own > 0, own > 0, loads_[i].microseconds, loads_[i].freeBytes);
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
    return order;
  }

  const PartGraph& graph_;
  const DeviceList& devices_;
  std::vector<DeviceLoad> loads_;
  std::vector<std::vector<size_t>> places_;
  std::vector<std::vector<int>> users_;  // by device and replica: parts
  std::vector<std::pair<size_t, size_t>> items_;
  int steps_ = 0;
};

}  // namespace

Result<std::vector<std::vector<size_t>>> choosePlaces(const PartGraph& graph, int replicas, const DeviceList& devices,
                                                      std::vector<DeviceLoad> loads) {
  Search search(graph, replicas, devices, loads);
  if (search.run()) return std::move(search).places();
  std::string text;
  for (const NetworkPart& part : graph.parts) {
    std::string line;
    for (size_t i = 0; i < devices.size(); ++i) {
      const std::string why = whyNot(part, *devices[i], loads[i]);
      line += fmt::format("{}{} {}", line.empty() ? "" : "; ", devices[i]->name(),
                          why.empty() ? fmt::format("has {} bytes free", loads[i].freeBytes) : why);
    }
    text += fmt::format("{}{} needs {} bytes: {}", text.empty() ? "" : "\n  ", part.name, part.cost.bytes(), line);
  }
  return Error{.code = Code::TooLarge,
               .message = fmt::format("there is no room{}:\n  {}",
                                      replicas == 1 ? "" : fmt::format(" for {} replicas", replicas), text),
               .where = {},
               .hint = "more devices, devices with more memory, fewer replicas, or a network cut into more parts"};
}

Diagnosed<std::vector<std::shared_ptr<const Replica>>> provision(CompiledParts& parts, const std::string& name,
                                                                 int replicas, const DeviceList& devices) {
  const PartGraph& graph = parts.source().graph();
  std::vector<DeviceLoad> loads;
  for (const auto& device : devices) loads.push_back({device->memoryFree(), device->plannedMicroseconds()});
  auto places = choosePlaces(graph, replicas, devices, std::move(loads));
  if (!places.ok()) return std::move(places).error().at(name);

  struct Task {
    size_t replica, part;
    std::optional<Diagnosed<std::shared_ptr<Resident>>> loaded;
  };
  std::vector<Task> tasks;
  for (size_t replica = 0; replica < places->size(); ++replica)
    for (size_t part = 0; part < graph.parts.size(); ++part) tasks.push_back({replica, part, std::nullopt});
  const auto work = [&](Task& task) {
    DeviceManager& device = *devices[(*places)[task.replica][task.part]];
    const NetworkPart& part = graph.parts[task.part];
    auto compiled = parts.get(task.part, device.spec().backend);
    if (compiled.ok())
      task.loaded = device.load(**compiled, graph.parts.size() == 1 ? name : name + "." + part.name, part.cost);
    else
      task.loaded = compiled.diagnostics();
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < tasks.size(); ++i) threads.push_back(quietThread([&, i] { work(tasks[i]); }));
  work(tasks.front());
  for (std::thread& thread : threads) thread.join();

  // What was loaded goes with the tasks where anything failed.
  Diagnostics faults;
  std::vector<std::shared_ptr<Replica>> made(places->size());
  for (Task& task : tasks) {
    if (!task.loaded->ok()) {
      for (const Error& error : task.loaded->diagnostics().errors()) faults.add(error);
      continue;
    }
    std::shared_ptr<Replica>& replica = made[task.replica];
    if (!replica)
      replica = std::make_shared<Replica>(Replica{std::vector<std::shared_ptr<Resident>>(graph.parts.size())});
    replica->parts[task.part] = **task.loaded;
  }
  if (!faults.empty()) return std::move(faults).at(name);
  return std::vector<std::shared_ptr<const Replica>>(made.begin(), made.end());
}

}  // namespace aglow
