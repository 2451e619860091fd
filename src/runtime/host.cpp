// The host: the registry of networks, admission, and the upkeep of replicas as devices fail and come back.
#include "runtime/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <unordered_map>

#include "compile/compile.h"
#include "runtime/device.h"
#include "runtime/provisioner.h"
#include "runtime/quiet_thread.h"
#include "runtime/served_network.h"
#include "support/fork.h"
#include "support/quote.h"
#include "support/suggest.h"

namespace aglow {

namespace {

// A version with what its replicas are made from, again where a device fails.
struct Entry {
  std::shared_ptr<ServedNetwork> network;
  std::shared_ptr<CompiledParts> parts;
  uint64_t number = 0;  // in the order in which they were added
};

struct Versions {
  std::map<std::string, Entry> byVersion;
  std::string current;
};

template <class T>
bool isDeviceFault(const Diagnosed<T>& outcome) {
  return !outcome.ok() && std::ranges::any_of(outcome.diagnostics().errors(),
                                              [](const Error& error) { return error.code == Code::Device; });
}

// Where a device fails while it is loaded, it is not among those that are chosen the next time; what was compiled
// stays.
Diagnosed<std::vector<std::shared_ptr<const Replica>>> provisionOnHealthy(CompiledParts& parts, const std::string& name,
                                                                          int replicas, const DeviceList& devices) {
  auto made = provision(parts, name, replicas, devices);
  for (size_t failed = 0; failed < devices.size() && isDeviceFault(made); ++failed)
    made = provision(parts, name, replicas, devices);
  return made;
}

Status check(const NetworkOptions& options) {
  const auto wrong = [](std::string why) { return Error{.code = Code::Usage, .message = std::move(why)}; };
  if (options.replicas < 1 || options.replicas > 1024) return wrong("there are from 1 to 1024 replicas");
  if (options.mostReplicas != 0 && (options.mostReplicas < options.replicas || options.mostReplicas > 1024))
    return wrong("there are at least as many replicas at most as there are always, and no more than 1024");
  if (options.batch.rows < 1) return wrong("a batch has at least one row");
  if (options.batch.delay.count() < 0) return wrong("a delay is not negative");
  const std::vector<int64_t>& sizes = options.batch.sizes;
  if (!sizes.empty() && (!std::is_sorted(sizes.begin(), sizes.end()) || sizes.front() < 1))
    return wrong("prepared sizes are positive, and in order");
  return {};
}

}  // namespace

class HostManager::Impl : public std::enable_shared_from_this<HostManager::Impl> {
public:
  explicit Impl(HostOptions options) : options_(std::move(options)), generation_(forkGeneration()) {}

  Status open() {
    if (!options_.clock) options_.clock = ownClock_ = std::make_shared<SystemClock>();
    if (options_.devices.empty()) options_.devices.push_back({.name = "cpu", .backend = std::string(defaultBackend())});
    for (const DeviceSpec& spec : options_.devices) {
      for (const auto& other : devices_)
        if (other->name() == spec.name)
          return Error{.code = Code::Usage, .message = fmt::format("two devices are named {}", quoted(spec.name))};
      AGLOW_TRY(devices_.emplace_back(), DeviceManager::create(spec, options_.clock));
    }
    for (const auto& device : devices_) {
      device->onRoom([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->pumpAll();
      });
      device->onFailure([weak = weak_from_this(), raw = device.get()] {
        if (const auto self = weak.lock()) self->deviceFailed(*raw);
      });
    }
    upkeep_ = quietThread([this] { upkeepLoop(); });
    return {};
  }

  void close() {
    std::vector<RequestPtr> left;
    std::vector<std::shared_ptr<ServedNetwork>> all;
    {
      const std::lock_guard lock(mutex_);
      draining_ = ends_ = true;
      for (const auto& [id, place] : requests_) left.push_back(place.request);
      for (const auto& [name, versions] : networks_)
        for (const auto& [version, entry] : versions.byVersion) all.push_back(entry.network);
      for (const Entry& entry : leaving_) all.push_back(entry.network);
    }
    changed_.notify_all();
    upkeep_.join();
    const Error ends{.code = Code::Cancelled, .message = "the host ends"};
    for (const RequestPtr& request : left)
      if (const auto network = networkOf(request->id)) network->end(request, ends);
    // Runs that are under way hold their devices; those end first.
    std::mutex mutex;
    std::condition_variable gone;
    size_t waiting = all.size();
    for (const auto& network : all)
      network->retire([&] {
        const std::lock_guard lock(mutex);
        if (--waiting == 0) gone.notify_all();
      });
    {
      std::unique_lock lock(mutex);
      gone.wait(lock, [&] { return waiting == 0; });
    }
    // Their threads end here, so that whoever holds the last of anything may let go of it.
    for (const auto& device : devices_) device->stop();
    if (ownClock_) ownClock_->stop();
  }

  Diagnosed<Unit> addNetwork(const std::string& name, std::shared_ptr<const NetworkSource> source,
                             NetworkOptions options) {
    if (Status fine = check(options); !fine.ok()) return std::move(fine).error().at(name);
    const auto allowed = devicesFor(options);
    if (!allowed.ok()) return Error(allowed.error()).at(name);
    const int replicas = options.replicas;
    const std::string version = options.version;
    const bool makeCurrent = options.makeCurrent;
    const auto exists = [&]() -> Status {
      const auto found = networks_.find(name);
      if (found == networks_.end() || !found->second.byVersion.contains(version)) return {};
      return Error{.code = Code::Usage,
                   .message = fmt::format("version {} of network {} is there already", quoted(version), quoted(name))};
    };
    {
      const std::lock_guard lock(mutex_);
      if (Status fine = exists(); !fine.ok()) return fine.error();
    }
    Entry entry{.network = nullptr, .parts = std::make_shared<CompiledParts>(source)};
    auto made = provisionOnHealthy(*entry.parts, name, replicas, *allowed);
    if (!made.ok()) return made.diagnostics();
    const ServedNetwork::Host host{.clock = options_.clock,
                                   .attempts = options_.attempts,
                                   .ended = [weak = weak_from_this()](const Request& request) {
                                     if (const auto self = weak.lock()) self->ended(request.id);
                                   }};
    entry.network = std::make_shared<ServedNetwork>(name, std::move(source), std::move(options), host);
    for (auto& replica : *made) entry.network->addReplica(std::move(replica));
    made = std::vector<std::shared_ptr<const Replica>>();
    const std::lock_guard lock(mutex_);
    if (Status fine = exists(); !fine.ok()) return fine.error();
    Versions& versions = networks_[name];
    entry.number = ++lastEntry_;
    if (entry.network->isElastic()) ++elastic_;
    versions.byVersion[version] = std::move(entry);
    if (makeCurrent || versions.current.empty()) versions.current = version;
    changed_.notify_all();
    return Unit{};
  }

  Status removeNetwork(const std::string& name, const std::string& version) {
    std::vector<std::shared_ptr<ServedNetwork>> removed;
    {
      const std::lock_guard lock(mutex_);
      const auto found = networks_.find(name);
      if (found == networks_.end()) return unknown(name);
      auto& byVersion = found->second.byVersion;
      if (!version.empty() && !byVersion.contains(version)) return unknown(name, version);
      for (auto it = byVersion.begin(); it != byVersion.end();)
        if (version.empty() || it->first == version) {
          removed.push_back(it->second.network);
          if (removed.back()->isElastic()) --elastic_;
          leaving_.push_back(std::move(it->second));
          it = byVersion.erase(it);
        } else {
          ++it;
        }
      // Of those that are left the one that was added last takes over.
      if (byVersion.empty())
        networks_.erase(found);
      else if (!byVersion.contains(found->second.current))
        found->second.current = std::max_element(byVersion.begin(), byVersion.end(), [](const auto& a, const auto& b) {
                                  return a.second.number < b.second.number;
                                })->first;
    }
    for (const auto& network : removed)
      network->retire([weak = weak_from_this(), raw = network.get()] {
        if (const auto self = weak.lock()) self->left(raw);
      });
    return {};
  }

  Status setCurrent(const std::string& name, const std::string& version) {
    const std::lock_guard lock(mutex_);
    const auto found = networks_.find(name);
    if (found == networks_.end()) return unknown(name);
    if (!found->second.byVersion.contains(version)) return unknown(name, version);
    found->second.current = version;
    return {};
  }

  Result<RequestId> run(RunRequest run, ReplyCallback done) {
    if (forkGeneration() != generation_)
      return Error{.code = Code::Usage, .message = "the host belongs to the process that this one was forked from"};
    const auto request = std::make_shared<Request>();
    request->done = std::move(done);
    request->accepted = options_.clock->now();
    request->run = std::move(run);
    std::shared_ptr<ServedNetwork> network;
    Status admitted;
    // A version that goes just now is not the current one any more.
    do {
      const std::lock_guard lock(mutex_);
      auto found = place(request);
      if (!found.ok()) {
        ++refused_;
        return std::move(found).error();
      }
      network = *std::move(found);
    } while (!(admitted = network->admit(request)).ok() && request->run.version.empty() && network->retired());
    if (!admitted.ok()) {
      ended(request->id);
      const std::lock_guard lock(mutex_);
      ++refused_;
      return std::move(admitted).error();
    }
    if (request->run.deadline != Clock::Time::max()) {
      const Clock::Timer timer =
          options_.clock->callAt(request->run.deadline, [network, weak = std::weak_ptr<Request>(request)] {
            if (const RequestPtr late = weak.lock())
              network->end(late, {.code = Code::DeadlinePassed, .message = "the deadline has passed"});
          });
      request->timer = timer;
      if (request->ended) options_.clock->cancel(timer);  // it was answered before anyone knew of the timer
    }
    const RequestId id = request->id;
    network->pump();
    return id;
  }

  bool cancel(RequestId id) {
    Place place;
    {
      const std::lock_guard lock(mutex_);
      const auto found = requests_.find(id);
      if (found == requests_.end()) return false;
      place = found->second;
    }
    return place.network->end(place.request, {.code = Code::Cancelled, .message = "the request was taken back"});
  }

  void drain(std::function<void()> done) {
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
      if (done && !requests_.empty()) {
        drained_.push_back(std::move(done));
        return;
      }
    }
    if (done) done();
  }
  bool draining() const {
    const std::lock_guard lock(mutex_);
    return draining_;
  }

  std::vector<NetworkInfo> networks() const {
    const std::lock_guard lock(mutex_);
    std::vector<NetworkInfo> all;
    for (const auto& [name, versions] : networks_)
      for (const auto& [version, entry] : versions.byVersion) {
        all.push_back(entry.network->info());
        all.back().current = version == versions.current;
      }
    return all;
  }

  Result<NetworkInfo> network(const std::string& name, const std::string& version) const {
    const std::lock_guard lock(mutex_);
    AGLOW_TRY(const std::shared_ptr<ServedNetwork> found, find(name, version));
    NetworkInfo info = found->info();
    info.current = networks_.at(name).current == info.version;
    return info;
  }

  HostStatistics statistics() const {
    HostStatistics all;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [name, versions] : networks_)
        for (const auto& [version, entry] : versions.byVersion) {
          all.networks.push_back(entry.network->statistics());
          all.networks.back().current = version == versions.current;
        }
      all.refused = refused_;
      all.underWay = requests_.size();
    }
    for (const auto& device : devices_) all.devices.push_back(device->statistics());
    return all;
  }

  const DeviceList& devices() const { return devices_; }
  const std::shared_ptr<Clock>& clock() const { return options_.clock; }

private:
  struct Place {
    RequestPtr request;
    std::shared_ptr<ServedNetwork> network;
  };

  // Gives a request its number and its place among those under way, or the reason why not. Under the lock, as what
  // follows up to find().
  Result<std::shared_ptr<ServedNetwork>> place(const RequestPtr& request) {
    AGLOW_TRY(std::shared_ptr<ServedNetwork> network, find(request->run.network, request->run.version));
    if (draining_) return Error{.code = Code::Busy, .message = "the host takes no more requests: it ends"};
    if (requests_.size() >= options_.queue && !requests_.contains(request->id))
      return Error{.code = Code::Busy,
                   .message = fmt::format("{} requests are under way, as many as the host takes", requests_.size())};
    if (request->id == 0) request->id = ++lastRequest_;
    requests_[request->id] = {request, network};
    return network;
  }
  Error unknown(const std::string& name, const std::string& version) const {
    std::string names;
    for (const auto& [other, entry] : networks_.at(name).byVersion)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", quoted(other));
    return {.code = Code::UnknownNetwork,
            .message = fmt::format("network {} has no version {}; there are {}", quoted(name), quoted(version), names)};
  }
  Error unknown(const std::string& name) const {
    std::vector<std::string_view> names;
    for (const auto& [other, versions] : networks_) names.push_back(other);
    return {.code = Code::UnknownNetwork,
            .message = fmt::format("there is no network {}", quoted(name)),
            .where = {},
            .hint = didYouMean(name, names)};
  }
  Result<std::shared_ptr<ServedNetwork>> find(const std::string& name, const std::string& version) const {
    const auto found = networks_.find(name);
    if (found == networks_.end()) return unknown(name);
    const auto entry = found->second.byVersion.find(version.empty() ? found->second.current : version);
    if (entry == found->second.byVersion.end()) return unknown(name, version);
    return entry->second.network;
  }

  std::shared_ptr<ServedNetwork> networkOf(RequestId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    return found == requests_.end() ? nullptr : found->second.network;
  }

  Result<DeviceList> devicesFor(const NetworkOptions& options) const {
    if (options.devices.empty()) return devices_;
    DeviceList allowed;
    for (const std::string& name : options.devices) {
      const auto found =
          std::find_if(devices_.begin(), devices_.end(), [&](const auto& device) { return device->name() == name; });
      if (found == devices_.end()) {
        std::string names;
        for (const auto& device : devices_) names += fmt::format("{}{}", names.empty() ? "" : ", ", device->name());
        return Error{.code = Code::Usage,
                     .message = fmt::format("there is no device {}; there are {}", quoted(name), names)};
      }
      allowed.push_back(*found);
    }
    return allowed;
  }

  void ended(RequestId id) {
    std::vector<std::function<void()>> drained;
    Place dropped;  // goes after the lock
    {
      const std::lock_guard lock(mutex_);
      const auto found = requests_.find(id);
      if (found != requests_.end()) {
        dropped = std::move(found->second);
        requests_.erase(found);
      }
      if (draining_ && requests_.empty()) drained.swap(drained_);
    }
    for (const auto& function : drained) function();
  }

  void left(const ServedNetwork* network) {
    Entry dropped;  // goes after the lock
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(leaving_.begin(), leaving_.end(), [&](const Entry& one) { return one.network.get() == network; });
    if (found == leaving_.end()) return;
    dropped = std::move(*found);
    leaving_.erase(found);
  }

  // Those that go, too: what they have accepted is still to be answered.
  std::vector<Entry> entries() const {
    const std::lock_guard lock(mutex_);
    std::vector<Entry> all = leaving_;
    for (const auto& [name, versions] : networks_)
      for (const auto& [version, entry] : versions.byVersion) all.push_back(entry);
    return all;
  }

  void pumpAll() {
    for (const Entry& entry : entries()) entry.network->pump();
  }

  void deviceFailed(const DeviceManager& device) {
    for (const Entry& entry : entries()) entry.network->dropReplicasOn(device);
    {
      const std::lock_guard lock(mutex_);
      damaged_ = true;
    }
    changed_.notify_all();
  }

  // Replicas that are missing are made again, as far as there is room; failed devices are asked whether they are back;
  // and networks whose number of replicas follows the load are looked at.
  void upkeepLoop() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      const bool broken = std::any_of(devices_.begin(), devices_.end(), [](const auto& d) { return !d->healthy(); });
      if (!damaged_ && !broken && elastic_ == 0) {
        changed_.wait(lock);
        continue;
      }
      if (!damaged_) changed_.wait_for(lock, options_.probe, [&] { return damaged_ || ends_; });
      if (ends_) return;
      damaged_ = false;
      lock.unlock();
      for (const auto& device : devices_) device->recover();
      for (const Entry& entry : entries()) entry.network->adaptToLoad();
      restoreReplicas();
      lock.lock();
    }
  }

  void restoreReplicas() {
    for (const Entry& entry : entries()) {
      ServedNetwork& network = *entry.network;
      // One that was made while its device failed.
      for (const auto& device : devices_)
        if (!device->healthy()) network.dropReplicasOn(*device);
      const auto always = static_cast<size_t>(network.options().replicas);
      Diagnostics why;
      while (network.replicas() < network.wanted() && why.empty()) {
        DeviceList devices = *devicesFor(network.options());
        // What is there for the load alone helps only where no other replica is.
        const bool forLoad = network.replicas() >= always;
        if (forLoad)
          for (const DeviceManager* used : network.devicesInUse())
            std::erase_if(devices, [&](const auto& device) { return device.get() == used; });
        auto made = provisionOnHealthy(*entry.parts, network.name(), 1, devices);
        if (made.ok())
          network.addReplica(std::move(made->front()));
        else if (forLoad)
          network.giveUpGrowth();
        else
          why = made.diagnostics();
      }
      if (network.replicas() > 0) continue;
      std::string fault = "no device can run it:";
      for (const auto& device : devices_)
        if (const DeviceStatistics facts = device->statistics(); !facts.healthy)
          fault += fmt::format(" {} failed ({});", facts.name, facts.fault);
      if (!why.empty()) fault += fmt::format(" {}", why.errors().front().message);
      network.failWaiting({.code = Code::Device, .message = fault, .where = network.name()});
    }
    // One that went while it was being restored keeps nothing.
    for (const Entry& entry : entries())
      if (entry.network->retired()) entry.network->retire();
  }

  HostOptions options_;
  const uint32_t generation_;
  std::shared_ptr<SystemClock> ownClock_;
  DeviceList devices_;
  std::thread upkeep_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, Versions> networks_;
  std::vector<Entry> leaving_;                     // removed, with requests that are not answered yet
  std::unordered_map<RequestId, Place> requests_;  // accepted and not answered
  RequestId lastRequest_ = 0;
  uint64_t lastEntry_ = 0;
  size_t elastic_ = 0;  // networks whose replicas follow the load
  uint64_t refused_ = 0;
  bool draining_ = false, damaged_ = false, ends_ = false;
  std::vector<std::function<void()>> drained_;
};

HostManager::HostManager(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HostManager::~HostManager() { impl_->close(); }

Result<std::unique_ptr<HostManager>> HostManager::create(HostOptions options) {
  auto impl = std::make_shared<Impl>(std::move(options));
  AGLOW_OK(impl->open());
  return std::unique_ptr<HostManager>(new HostManager(std::move(impl)));
}

Diagnosed<Unit> HostManager::addNetwork(const std::string& name, std::shared_ptr<const NetworkSource> source,
                                        NetworkOptions options) {
  return impl_->addNetwork(name, std::move(source), std::move(options));
}
Status HostManager::removeNetwork(const std::string& name, const std::string& version) {
  return impl_->removeNetwork(name, version);
}
Status HostManager::setCurrent(const std::string& name, const std::string& version) {
  return impl_->setCurrent(name, version);
}

Result<RequestId> HostManager::runNetwork(RunRequest request, ReplyCallback done) {
  return impl_->run(std::move(request), std::move(done));
}

std::future<RunReply> HostManager::runNetwork(RunRequest request) {
  const auto promise = std::make_shared<std::promise<RunReply>>();
  std::future<RunReply> future = promise->get_future();
  const Clock::Time now = impl_->clock()->now();
  request.inPlace = true;  // nothing of the caller's is called
  auto accepted = impl_->run(std::move(request), [promise](RunReply reply) { promise->set_value(std::move(reply)); });
  if (!accepted.ok())
    promise->set_value(
        {.outputs = std::move(accepted).error(), .version = {}, .accepted = now, .started = now, .ended = now});
  return future;
}

bool HostManager::cancel(RequestId request) { return impl_->cancel(request); }
void HostManager::drain(std::function<void()> done) { impl_->drain(std::move(done)); }
bool HostManager::draining() const { return impl_->draining(); }
std::vector<NetworkInfo> HostManager::networks() const { return impl_->networks(); }
Result<NetworkInfo> HostManager::network(const std::string& name, const std::string& version) const {
  return impl_->network(name, version);
}
HostStatistics HostManager::statistics() const { return impl_->statistics(); }
const std::vector<std::shared_ptr<DeviceManager>>& HostManager::devices() const { return impl_->devices(); }
const std::shared_ptr<Clock>& HostManager::clock() const { return impl_->clock(); }

}  // namespace aglow
