#include "runtime/served_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/batches.h"
#include "support/quote.h"

namespace aglow {

namespace {

double microseconds(Clock::Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

bool anyState(const PartGraph& graph) {
  return std::any_of(graph.parts.begin(), graph.parts.end(), [](const NetworkPart& part) { return part.hasState; });
}

// Looks at the load after which the number of replicas changes: it grows soon, and shrinks late.
constexpr int kLooksToGrow = 2, kLooksToShrink = 25;

// As many runs as keep every device of it busy, and one that waits.
size_t mostRuns(const Replica& replica) {
  size_t lanes = 1;
  for (const auto& part : replica.parts) lanes += static_cast<size_t>(part->device().lanes());
  return lanes;
}

// A device that fails says so before its replicas are let go of: what is sent there meanwhile would only come back.
bool isHealthy(const Replica& replica) {
  return std::all_of(replica.parts.begin(), replica.parts.end(),
                     [](const auto& part) { return part->device().healthy(); });
}

}  // namespace

ServedNetwork::ServedNetwork(std::string name, std::shared_ptr<const NetworkSource> source, NetworkOptions options,
                             Host host)
    : name_(std::move(name)),
      source_(std::move(source)),
      graph_(source_, &source_->graph()),
      options_(std::move(options)),
      host_(std::move(host)),
      hasState_(anyState(*graph_)),
      wanted_(static_cast<size_t>(options_.replicas)) {}

Status ServedNetwork::admit(const RequestPtr& request) {
  const auto refuse = [&](Error why) {
    ++account_.refused;
    return why;
  };
  if (options_.batch.rows > 1) {
    auto rows = rowsOf(request->run.inputs);
    if (!rows.ok()) {
      const std::lock_guard lock(mutex_);
      return refuse(std::move(rows).error());
    }
    request->rows = *rows;
    request->rowKey = rowKeyOf(request->run.inputs);
  }
  const std::lock_guard lock(mutex_);
  if (retired_)
    return refuse({.code = Code::UnknownNetwork, .message = fmt::format("network {} goes away", quoted(name_))});
  if (replicas_.empty() && !fault_.empty()) return refuse({.code = Code::Device, .message = fault_, .where = name_});
  if (underWay_ >= options_.queue)
    return refuse({.code = Code::Busy,
                   .message = fmt::format("{} requests of network {} are under way, as many as may be", underWay_,
                                          quoted(name_))});
  ++account_.accepted;
  ++underWay_;
  waiting_.add(request);
  return {};
}

int64_t ServedNetwork::paddedRows(int64_t rows) const {
  const auto& sizes = options_.batch.sizes;
  const auto next = std::lower_bound(sizes.begin(), sizes.end(), rows);
  return next == sizes.end() ? rows : *next;
}

std::vector<std::shared_ptr<ServedNetwork::InUse>> ServedNetwork::freeReplicas() const {
  std::vector<std::shared_ptr<InUse>> free;
  for (const auto& use : replicas_)
    if (use->underWay < use->most && isHealthy(*use->replica)) free.push_back(use);
  std::stable_sort(free.begin(), free.end(),
                   [](const auto& a, const auto& b) { return a->underWay * b->most < b->underWay * a->most; });
  return free;
}

void ServedNetwork::pump() {
  while (true) {
    Batch batch;
    std::vector<std::shared_ptr<InUse>> free;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      free = freeReplicas();
      if (free.empty()) return;
      const int64_t rows = std::max<int64_t>(options_.batch.rows, 1);
      const Clock::Time due = waiting_.first().accepted + options_.batch.delay;
      if (rows > 1 && host_.clock->now() < due && waiting_.rowsReady(rows) < rows) {
        if (delayed_ == 0)
          delayed_ = host_.clock->callAt(due, [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (!self) return;
            {
              const std::lock_guard inner(self->mutex_);
              self->delayed_ = 0;
            }
            self->pump();
          });
        return;
      }
      batch = waiting_.take(rows);
      for (const RequestPtr& request : batch) request->started = host_.clock->now();
      running_ += batch.size();
      ++runs_;
    }
    bool started = false;
    for (const auto& use : free)
      if ((started = start(use, batch))) break;
    if (started) continue;
    // The devices take no more now; whoever makes room calls again.
    {
      const std::lock_guard lock(mutex_);
      running_ -= batch.size();
      --runs_;
      for (const RequestPtr& request : batch)
        if (!request->ended) waiting_.add(request);
    }
    releaseWhereIdle();
    return;
  }
}

bool ServedNetwork::start(const std::shared_ptr<InUse>& use, const Batch& batch) {
  int64_t rows = 0;
  for (const RequestPtr& request : batch) rows += request->rows;
  const int64_t padded = paddedRows(rows);
  Execution execution{.graph = graph_,
                      .replica = use->replica,
                      .inputs = {},
                      .priority = batch.front()->run.priority,
                      .inPlace = std::ranges::all_of(batch, [](const RequestPtr& one) { return one->run.inPlace; }),
                      .wanted = {},
                      .done = {}};
  if (options_.batch.rows > 1) {
    std::vector<const Values*> values;
    for (const RequestPtr& request : batch) values.push_back(&request->run.inputs);
    execution.inputs = joinRows(values, padded);
  } else {
    execution.inputs = batch.front()->run.inputs;
  }
  execution.wanted = [batch] {
    return std::any_of(batch.begin(), batch.end(), [](const RequestPtr& request) { return !request->ended; });
  };
  execution.done = [self = shared_from_this(), use, batch, padded](Outputs outputs) {
    self->finished(use, batch, padded, std::move(outputs));
  };
  {
    const std::lock_guard lock(mutex_);
    ++use->underWay;
  }
  if (startExecution(execution)) return true;
  const std::lock_guard lock(mutex_);
  --use->underWay;
  return false;
}

void ServedNetwork::finished(const std::shared_ptr<InUse>& use, const Batch& batch, int64_t rows, Outputs outputs) {
  const bool lost = !outputs.ok() && outputs.diagnostics().errors().front().code == Code::Device;
  // Others may be at fault where several were joined: each gets a run of its own.
  const bool apart = !outputs.ok() && !lost && batch.size() > 1;
  Batch answered;
  {
    const std::lock_guard lock(mutex_);
    --use->underWay;
    --runs_;
    running_ -= batch.size();
    ++account_.runs;
    if (outputs.ok()) ++account_.batches[rows];
    for (const RequestPtr& request : batch) {
      if (request->ended) continue;
      const bool again = apart || (lost && !hasState_ && ++request->attempts < host_.attempts);
      if (!again) {
        answered.push_back(request);
        continue;
      }
      if (lost) ++account_.retried;
      request->alone = request->alone || apart;
      waiting_.add(request);
    }
  }
  if (!outputs.ok() || options_.batch.rows <= 1) {
    for (const RequestPtr& request : answered) answer(request, outputs, rows);
  } else {
    int64_t first = 0;
    for (const RequestPtr& request : batch) {
      if (!request->ended) answer(request, takeRows(*outputs, first, request->rows, rows), rows);
      first += request->rows;
    }
  }
  pump();
  releaseWhereIdle();
}

bool ServedNetwork::answer(const RequestPtr& request, Outputs outputs, int64_t rows) {
  if (request->ended.exchange(true)) return false;
  reply(request, std::move(outputs), rows);
  return true;
}

void ServedNetwork::reply(const RequestPtr& request, Outputs outputs, int64_t rows) {
  if (const Clock::Timer timer = request->timer; timer != 0) host_.clock->cancel(timer);
  RunReply sent{.outputs = std::move(outputs),
                .version = options_.version,
                .accepted = request->accepted,
                .started = request->started,
                .ended = host_.clock->now(),
                .batchRows = rows};
  {
    const std::lock_guard lock(mutex_);
    --underWay_;
    if (sent.outputs.ok()) {
      ++account_.succeeded;
      account_.queue.add(microseconds(sent.started - sent.accepted));
      account_.run.add(microseconds(sent.ended - sent.started));
      account_.total.add(microseconds(sent.ended - sent.accepted));
    } else {
      const Code code = sent.outputs.diagnostics().errors().front().code;
      ++(code == Code::Cancelled        ? account_.cancelled
         : code == Code::DeadlinePassed ? account_.expired
                                        : account_.failed);
    }
  }
  request->done(std::move(sent));
  request->done = nullptr;
  host_.ended(*request);
}

bool ServedNetwork::end(const RequestPtr& request, const Error& why) {
  // First this: what has ended is never put back among those that wait.
  if (request->ended.exchange(true)) return false;
  {
    const std::lock_guard lock(mutex_);
    waiting_.remove(*request);
  }
  reply(request, why, 0);
  releaseWhereIdle();
  return true;
}

void ServedNetwork::addReplica(std::shared_ptr<const Replica> replica) {
  const size_t most = mostRuns(*replica);
  {
    const std::lock_guard lock(mutex_);
    replicas_.push_back(std::make_shared<InUse>(InUse{std::move(replica), 0, most}));
    fault_.clear();
  }
  pump();
}

size_t ServedNetwork::replicas() const {
  const std::lock_guard lock(mutex_);
  return replicas_.size();
}

size_t ServedNetwork::wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

void ServedNetwork::adaptToLoad() {
  std::shared_ptr<InUse> dropped;  // goes after the lock
  const std::lock_guard lock(mutex_);
  if (!isElastic() || retired_ || replicas_.size() < wanted_) return;
  const bool crowded = !waiting_.empty() && freeReplicas().empty();
  const auto idlest = std::min_element(replicas_.begin(), replicas_.end(),
                                       [](const auto& a, const auto& b) { return a->underWay < b->underWay; });
  size_t room = 0;  // of the others
  for (auto it = replicas_.begin(); it != replicas_.end(); ++it)
    if (it != idlest) room += (*it)->most;
  crowdedLooks_ = crowded ? crowdedLooks_ + 1 : 0;
  quietLooks_ = waiting_.empty() && runs_ * 2 < room ? quietLooks_ + 1 : 0;
  if (crowdedLooks_ >= kLooksToGrow && wanted_ < static_cast<size_t>(options_.mostReplicas)) {
    crowdedLooks_ = 0;
    ++wanted_;
  } else if (quietLooks_ >= kLooksToShrink && wanted_ > static_cast<size_t>(options_.replicas)) {
    quietLooks_ = 0;
    --wanted_;
    dropped = *idlest;
    replicas_.erase(idlest);
  }
}

void ServedNetwork::giveUpGrowth() {
  const std::lock_guard lock(mutex_);
  wanted_ = std::max(static_cast<size_t>(options_.replicas), replicas_.size());
  crowdedLooks_ = -kLooksToShrink;  // not again at once
}

std::vector<const DeviceManager*> ServedNetwork::devicesInUse() const {
  std::vector<const DeviceManager*> devices;
  const std::lock_guard lock(mutex_);
  for (const auto& use : replicas_)
    for (const auto& part : use->replica->parts) devices.push_back(&part->device());
  return devices;
}

void ServedNetwork::dropReplicasOn(const DeviceManager& device) {
  std::vector<std::shared_ptr<InUse>> dropped;  // what they hold goes after the lock
  const std::lock_guard lock(mutex_);
  const auto isLost = [&](const std::shared_ptr<InUse>& use) {
    return std::any_of(use->replica->parts.begin(), use->replica->parts.end(),
                       [&](const auto& part) { return &part->device() == &device; });
  };
  const auto lost = std::stable_partition(replicas_.begin(), replicas_.end(), std::not_fn(isLost));
  dropped.assign(lost, replicas_.end());
  replicas_.erase(lost, replicas_.end());
}

void ServedNetwork::failWaiting(const Error& why) {
  Batch all;
  {
    const std::lock_guard lock(mutex_);
    if (!replicas_.empty()) return;
    fault_ = why.message;
    all = waiting_.takeAll();
  }
  for (const RequestPtr& request : all) answer(request, why, 0);
  releaseWhereIdle();
}

void ServedNetwork::retire(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    retired_ = true;
    if (gone) gone_.push_back(std::move(gone));
  }
  releaseWhereIdle();
}

bool ServedNetwork::retired() const {
  const std::lock_guard lock(mutex_);
  return retired_;
}

void ServedNetwork::releaseWhereIdle() {
  std::vector<std::shared_ptr<InUse>> dropped;
  std::vector<std::function<void()>> gone;
  {
    const std::lock_guard lock(mutex_);
    if (!retired_ || underWay_ > 0 || runs_ > 0) return;
    dropped.swap(replicas_);
    gone.swap(gone_);
  }
  dropped.clear();
  for (const std::function<void()>& function : gone) function();
}

NetworkInfo ServedNetwork::info() const {
  const std::lock_guard lock(mutex_);
  NetworkInfo all{.name = name_,
                  .version = options_.version,
                  .current = false,
                  .ready = !replicas_.empty(),
                  .spec = source_->spec(),
                  .batch = options_.batch,
                  .replicas = {}};
  for (const auto& use : replicas_) {
    std::vector<std::string>& names = all.replicas.emplace_back();
    for (const auto& part : use->replica->parts) names.push_back(part->device().name());
  }
  return all;
}

NetworkStatistics ServedNetwork::statistics() const {
  const std::lock_guard lock(mutex_);
  NetworkStatistics all = account_;
  all.name = name_;
  all.version = options_.version;
  all.waiting = waiting_.size();
  all.running = running_;
  all.replicas = replicas_.size();
  all.wanted = wanted_;
  return all;
}

}  // namespace aglow
