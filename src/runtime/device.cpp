// Devices: a queue of runs, threads that take them from it (the lanes), and the ledger of what is loaded.
#include "runtime/device.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <optional>
#include <utility>

#include "compile/compile.h"
#include "runtime/quiet_thread.h"
#include "support/machine.h"
#include "support/quote.h"

namespace aglow {

namespace {

int64_t bytesOf(const ModelValue& value) {
  int64_t bytes = 0;
  for (const Tensor& tensor : value.tensors) bytes += tensor.bytes();
  return bytes;
}

// The calling thread, and those that it starts from now on, run on these cores. UnsupportedFeature for a core that is
// not there.
Status pin(const std::vector<int>& cores) {
  if (cores.empty()) return {};
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores)
    if (core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &set);
  cpu_set_t allowed;
  const bool known = pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) == 0;
  for (const int core : cores)
    if (core >= CPU_SETSIZE || (known && !CPU_ISSET(static_cast<size_t>(core), &allowed)))
      return Error{.code = Code::Device,
                   .message = fmt::format("core {} is not there, or not for this program", core),
                   .where = {},
                   .hint = "`nproc` says how many there are; the first is 0"};
  if (const int fault = pthread_setaffinity_np(pthread_self(), sizeof set, &set); fault != 0)
    return Error{.code = Code::Device, .message = fmt::format("cores cannot be chosen: {}", std::strerror(fault))};
  return {};
}

// Asks the system, which takes longer than a short run.
int lanesOf(const DeviceSpec& spec) {
  if (spec.lanes > 0) return spec.lanes;
  if (spec.backend != "cpu" || spec.simulation) return 1;
  return spec.cores.empty() ? machineThreads() : static_cast<int>(spec.cores.size());
}

// Something is run on this thread: a run that is brought where another ends, in its callback, goes to a lane, so that
// they never nest.
class RunsHere {
public:
  RunsHere() : before_(std::exchange(runs, true)) {}
  ~RunsHere() { runs = before_; }
  RunsHere(const RunsHere&) = delete;
  RunsHere& operator=(const RunsHere&) = delete;

  static bool something() { return runs; }

private:
  static thread_local bool runs;
  bool before_;
};

thread_local bool RunsHere::runs = false;

}  // namespace

struct DeviceManager::Queued {
  Job job;
  uint64_t number = 0;    // in order of arrival
  uint64_t breakage = 0;  // how often the device had failed when it came
  Clock::Time arrived;

  bool operator<(const Queued& other) const {  // for a heap: the first to go is the largest
    if (job.priority != other.job.priority) return job.priority < other.job.priority;
    return number > other.number;
  }
};

struct DeviceManager::Flight {
  Queued queued;
  Outputs outputs;
  Clock::Timer timer = 0;
};

// A thread that takes runs.
struct DeviceManager::Lane {
  std::condition_variable changed;
  bool called = false;
};

struct DeviceManager::Queue {
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Lane*> idle;  // the one that worked last is called first: its caches are warm
  std::vector<Queued> heap;
  uint64_t arrivals = 0, failures = 0;
  bool ends = false, healthy = true, broken = false;
  std::string fault;
  size_t running = 0;
  uint64_t runs = 0, failedRuns = 0;
  Clock::Duration busy{};
  // What is simulated: when its engines are free again, and the answers on their way.
  Clock::Time inFree{}, computeFree{}, outFree{};
  std::map<uint64_t, std::shared_ptr<Flight>> flights;
};

Resident::~Resident() {
  // Others ask for its bytes as long as it is listed; the part goes afterwards, with this.
  const std::lock_guard lock(device_->mutex_);
  device_->residents_.erase(this);
}

DeviceManager::DeviceManager(DeviceSpec spec, std::shared_ptr<Clock> clock)
    : spec_(std::move(spec)),
      clock_(std::move(clock)),
      limit_(spec_.memory > 0 ? spec_.memory : machineMemory()),
      lanes_(lanesOf(spec_)),
      weights_(std::make_shared<TensorPool>()),
      made_(clock_->now()),
      queue_(std::make_unique<Queue>()) {}

Result<std::shared_ptr<DeviceManager>> DeviceManager::create(DeviceSpec spec, std::shared_ptr<Clock> clock) {
  CompileOptions options;
  options.backend = spec.backend;
  if (auto backend = makeBackend(options); !backend.ok()) return std::move(backend).error().at(spec.name);
  const std::shared_ptr<DeviceManager> device(new DeviceManager(std::move(spec), std::move(clock)));
  const int threads = device->spec_.cores.empty() ? (device->spec_.simulation ? 1 : machineThreads())
                                                  : static_cast<int>(device->spec_.cores.size());
  // Threads inherit the cores of the one that starts them.
  Status started;
  quietThread([&] {
    started = pin(device->spec_.cores);
    if (!started.ok()) return;
    device->pool_ = std::make_shared<ThreadPool>(threads);
    if (device->spec_.simulation && device->spec_.simulation->inlined) return;
    for (int i = 0; i < device->lanes_; ++i) {
      Lane& lane = *device->queue_->lanes.emplace_back(std::make_unique<Lane>());
      device->threads_.emplace_back([raw = device.get(), &lane] { raw->laneLoop(lane); });
    }
  }).join();
  if (!started.ok()) return std::move(started).error().at(device->name());
  if (device->spec_.simulation && device->spec_.simulation->fails.count() > 0) device->failLater();
  return device;
}

// One that is simulated to fail does so again and again, and is repaired in between.
void DeviceManager::failLater() {
  const std::weak_ptr<DeviceManager> weak = weak_from_this();
  clock_->callAt(clock_->now() + spec_.simulation->fails, [weak] {
    const std::shared_ptr<DeviceManager> self = weak.lock();
    if (!self) return;
    self->breakDown("it is simulated to fail");
    self->clock_->callAt(self->clock_->now() + self->spec_.simulation->repair, [weak] {
      const std::shared_ptr<DeviceManager> broken = weak.lock();
      if (!broken) return;
      broken->repair();
      broken->failLater();
    });
  });
}

DeviceManager::~DeviceManager() { stop(); }

void DeviceManager::stop() {
  {
    const std::lock_guard lock(mutex_);
    queue_->ends = true;
  }
  for (const auto& lane : queue_->lanes) lane->changed.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

int64_t DeviceManager::memoryFree() const {
  const std::lock_guard lock(mutex_);
  int64_t used = 0;
  for (const Resident* resident : residents_) used += resident->bytes();
  return std::max<int64_t>(limit_ - used, 0);
}

double DeviceManager::plannedMicroseconds() const {
  const std::lock_guard lock(mutex_);
  double all = 0;
  for (const Resident* resident : residents_) all += resident->cost_.microseconds;
  return all;
}

bool DeviceManager::healthy() const {
  const std::lock_guard lock(mutex_);
  return queue_->healthy;
}

Error DeviceManager::fault() const {
  return Error{.code = Code::Device, .message = queue_->fault.empty() ? "it ends" : queue_->fault, .where = spec_.name};
}

Diagnosed<std::shared_ptr<Resident>> DeviceManager::load(const CompiledPart& part, const std::string& name,
                                                         const PartCost& cost) {
  const std::shared_ptr<Resident> resident(new Resident(shared_from_this(), cost));
  const int64_t bytes = cost.bytes();
  int64_t free = limit_;
  {
    const std::lock_guard lock(mutex_);
    if (!queue_->healthy) return fault();
    for (const Resident* other : residents_) free -= other->bytes();
    if (bytes > free)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("{} needs {} bytes; {} of {} are free, {} are missing", quoted(name), bytes,
                                          std::max<int64_t>(free, 0), limit_, bytes - std::max<int64_t>(free, 0)),
                   .where = spec_.name};
    residents_.insert(resident.get());
  }
  auto loaded = part.load({.memoryLimit = free,
                           .threads = pool_->threads(),
                           .contexts = lanes_,
                           .queue = kDefaultQueue,
                           .pool = pool_,
                           .weights = weights_});
  if (!loaded.ok()) return Diagnostics(loaded.diagnostics()).at(spec_.name);
  const std::lock_guard lock(mutex_);
  if (!queue_->healthy) return fault();
  resident->part_ = *std::move(loaded);
  return resident;
}

bool DeviceManager::offer(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    const size_t underWay = queue_->heap.size() + queue_->running;
    if (queue_->healthy && underWay >= spec_.queue + static_cast<size_t>(lanes_)) return false;
  }
  enqueue(std::move(job));
  return true;
}

void DeviceManager::push(Job job) { enqueue(std::move(job)); }

// Not on a device with cores of its own, where the calling thread is not, nor on one that is simulated.
bool DeviceManager::runsInPlace(const Job& job) const {
  if (threads_.empty()) return true;
  return job.inPlace && !RunsHere::something() && spec_.cores.empty() && !spec_.simulation && queue_->heap.empty() &&
         queue_->running < threads_.size() && job.resident->typical_ <= spec_.shortRun;
}

void DeviceManager::enqueue(Job job) {
  std::unique_lock lock(mutex_);
  if (!queue_->healthy) {
    const Error why = fault();
    ++queue_->failedRuns;
    lock.unlock();
    job.done(why);
    return;
  }
  Queued queued{std::move(job), queue_->arrivals++, queue_->failures, clock_->now()};
  if (runsInPlace(queued.job)) {
    ++queue_->running;
    lock.unlock();
    execute(std::move(queued));
    return;
  }
  queue_->heap.push_back(std::move(queued));
  std::push_heap(queue_->heap.begin(), queue_->heap.end());
  if (queue_->idle.empty()) return;
  Lane* const lane = queue_->idle.back();
  queue_->idle.pop_back();
  lane->called = true;
  lock.unlock();
  lane->changed.notify_one();
}

void DeviceManager::laneLoop(Lane& own) {
  // From the first run to the last of those that follow each other: between two of them the threads of the pool would
  // begin to help other lanes, and be in the way of the next.
  std::optional<ThreadPool::Caller> working;
  std::unique_lock lock(mutex_);
  while (true) {
    if (queue_->heap.empty()) {
      if (queue_->ends) return;
      working.reset();
      queue_->idle.push_back(&own);
      own.changed.wait(lock, [&] { return queue_->ends || own.called; });
      own.called = false;
      continue;
    }
    std::pop_heap(queue_->heap.begin(), queue_->heap.end());
    Queued queued = std::move(queue_->heap.back());
    queue_->heap.pop_back();
    ++queue_->running;
    lock.unlock();
    if (!working) working.emplace(*pool_);
    execute(std::move(queued));
    lock.lock();
  }
}

void DeviceManager::execute(Queued queued) {
  const RunsHere runs;
  const Clock::Time begin = clock_->now();
  Outputs outputs = [&]() -> Outputs {
    try {
      return queued.job.resident->part().run(queued.job.inputs);
    } catch (const std::bad_alloc&) {
      return Error{.code = Code::OutOfMemory, .message = "a run has no memory", .where = spec_.name};
    } catch (const std::exception& fault) {
      return Error{.code = Code::Internal, .message = fault.what(), .where = spec_.name};
    }
  }();
  if (spec_.simulation) {
    simulate(std::move(queued), std::move(outputs));
    return;
  }
  // The device itself says that it is gone: everything on it is.
  if (!outputs.ok() && outputs.diagnostics().errors().front().code == Code::Device)
    fail(outputs.diagnostics().errors().front().message);
  {
    const std::lock_guard lock(mutex_);
    --queue_->running;
    ++queue_->runs;
    const Clock::Duration took = clock_->now() - begin;
    queue_->busy += took;
    if (queued.breakage != queue_->failures) outputs = fault();
    if (outputs.ok()) {
      Clock::Duration& typical = queued.job.resident->typical_;
      typical = typical == Clock::Duration::max() ? took : (7 * typical + took) / 8;
    } else {  // a run that is refused is short, whatever the others are
      ++queue_->failedRuns;
    }
  }
  finish(queued.job, std::move(outputs));
}

void DeviceManager::finish(const Job& job, Outputs outputs) {
  job.done(std::move(outputs));
  if (room_) room_();
}

// The times that the engines would have taken, on the device's own clock: inputs are copied, the run waits for them and
// for the engine that computes, and outputs are copied back. Each of the three does one thing at a time, so that the
// inputs of one run are copied while another computes.
void DeviceManager::simulate(Queued queued, Outputs outputs) {
  const Simulation& model = *spec_.simulation;
  const auto seconds = [](double s) {
    return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(s));
  };
  const auto copying = [&](int64_t bytes) {
    return model.latency +
           (model.bytesPerSecond > 0 ? seconds(static_cast<double>(bytes) / model.bytesPerSecond) : Clock::Duration{});
  };
  int64_t in = 0, out = 0;
  for (const auto& [name, value] : queued.job.inputs) in += bytesOf(value);
  if (outputs.ok())
    for (const ModelValue& value : *outputs) out += bytesOf(value);
  const Clock::Duration computing =
      model.latency + (model.flopsPerSecond > 0 ? seconds(queued.job.flops / model.flopsPerSecond) : Clock::Duration{});
  const std::weak_ptr<DeviceManager> weak = weak_from_this();
  const std::lock_guard lock(mutex_);
  Queue& queue = *queue_;
  queue.inFree = std::max(queue.inFree, queued.arrived) + copying(in);
  queue.computeFree = std::max(queue.computeFree, queue.inFree) + computing;
  queue.outFree = std::max(queue.outFree, queue.computeFree) + copying(out);
  queue.busy += computing;
  const uint64_t number = queued.number;
  const auto flight = std::make_shared<Flight>(Flight{std::move(queued), std::move(outputs), 0});
  queue.flights[number] = flight;
  flight->timer = clock_->callAt(queue.outFree, [weak, number] {
    const std::shared_ptr<DeviceManager> self = weak.lock();
    if (!self) return;
    std::shared_ptr<Flight> landed;
    {
      const std::lock_guard inner(self->mutex_);
      const auto found = self->queue_->flights.find(number);
      if (found == self->queue_->flights.end()) return;
      landed = std::move(found->second);
      self->queue_->flights.erase(found);
      --self->queue_->running;
      ++self->queue_->runs;
      if (landed->queued.breakage != self->queue_->failures) landed->outputs = self->fault();
      if (!landed->outputs.ok()) ++self->queue_->failedRuns;
    }
    self->finish(landed->queued.job, std::move(landed->outputs));
  });
}

void DeviceManager::fail(const std::string& why) {
  std::vector<Queued> waiting;
  std::map<uint64_t, std::shared_ptr<Flight>> flights;
  Error error{.code = Code::Device, .message = why, .where = spec_.name};
  {
    const std::lock_guard lock(mutex_);
    if (!queue_->healthy) return;
    queue_->healthy = false;
    queue_->fault = why;
    ++queue_->failures;
    queue_->inFree = queue_->computeFree = queue_->outFree = {};
    waiting.swap(queue_->heap);
    flights.swap(queue_->flights);
    queue_->running -= flights.size();
    queue_->failedRuns += waiting.size() + flights.size();
  }
  // First the host, so that runs that are sent again go elsewhere.
  if (failed_) failed_();
  for (const auto& [number, flight] : flights) {
    clock_->cancel(flight->timer);
    flight->queued.job.done(error);
  }
  for (const Queued& queued : waiting) queued.job.done(error);
}

void DeviceManager::breakDown(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    queue_->broken = true;
  }
  fail(why);
}

void DeviceManager::repair() {
  const std::lock_guard lock(mutex_);
  queue_->broken = false;
}

bool DeviceManager::recover() {
  {
    const std::lock_guard lock(mutex_);
    if (queue_->healthy) return true;
    if (queue_->broken) return false;
  }
  CompileOptions options;
  options.backend = spec_.backend;
  if (!makeBackend(options).ok()) return false;
  const std::lock_guard lock(mutex_);
  queue_->healthy = true;
  return true;
}

DeviceStatistics DeviceManager::statistics() const {
  const std::lock_guard lock(mutex_);
  DeviceStatistics all{.name = spec_.name,
                       .backend = spec_.backend,
                       .healthy = queue_->healthy,
                       .fault = queue_->healthy ? "" : queue_->fault,
                       .memoryLimit = limit_,
                       .memoryUsed = 0,
                       .parts = residents_.size(),
                       .waiting = queue_->heap.size(),
                       .running = queue_->running,
                       .runs = queue_->runs,
                       .failedRuns = queue_->failedRuns,
                       .failures = queue_->failures};
  for (const Resident* resident : residents_) all.memoryUsed += resident->bytes();
  const auto seconds = [](Clock::Duration d) { return std::chrono::duration<double>(d).count(); };
  all.busySeconds = seconds(queue_->busy);
  const double passed = seconds(clock_->now() - made_) * lanes_;
  all.utilisation = passed > 0 ? std::min(all.busySeconds / passed, 1.0) : 0;
  return all;
}

}  // namespace aglow
