#include "runtime/executor.h"

#include <algorithm>
#include <mutex>
#include <optional>

namespace aglow {

namespace {

class Course : public std::enable_shared_from_this<Course> {
public:
  explicit Course(Execution execution) : execution_(std::move(execution)) {
    const std::vector<NetworkPart>& parts = execution_.graph->parts;
    states_.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i)
      for (const auto& [name, wire] : parts[i].inputs)
        if (wire.part != Wire::kNetwork) {
          std::vector<size_t>& readers = states_[wire.part].readers;
          if (readers.empty() || readers.back() != i) {
            readers.push_back(i);
            ++states_[i].missing;
          }
          ++states_[wire.part].reads;
        }
    for (const Wire& wire : execution_.graph->outputs)
      if (wire.part != Wire::kNetwork) ++states_[wire.part].reads;
    left_ = parts.size();
  }

  Execution& execution() { return execution_; }

  bool start() {
    std::vector<size_t> first;
    for (size_t i = 0; i < states_.size(); ++i)
      if (states_[i].missing == 0) first.push_back(i);
    AGLOW_CHECK(!first.empty(), "no part can begin");
    DeviceManager::Job job = jobOf(first.front());
    if (!execution_.replica->parts[first.front()]->device().offer(job)) return false;
    for (size_t i = 1; i < first.size(); ++i) send(first[i]);
    return true;
  }

private:
  struct State {
    std::vector<size_t> readers;  // parts
    size_t missing = 0;           // parts that it waits for
    size_t reads = 0;             // of its outputs that are still to come
    std::vector<ModelValue> outputs;
  };

  const ModelValue* valueOf(const Wire& wire) const {
    if (wire.part != Wire::kNetwork) return &states_[wire.part].outputs[wire.output];
    const auto given = execution_.inputs.find(wire.name);
    return given == execution_.inputs.end() ? nullptr : &given->second;
  }

  // Under the lock, or before anything runs.
  DeviceManager::Job jobOf(size_t number) {
    const NetworkPart& part = execution_.graph->parts[number];
    DeviceManager::Job job{
        .resident = execution_.replica->parts[number],
        .inputs = {},
        .flops = part.cost.flops,
        .priority = execution_.priority,
        .inPlace = execution_.inPlace,
        .done = [self = shared_from_this(), number](Outputs outputs) { self->ended(number, std::move(outputs)); }};
    for (const auto& [name, wire] : part.inputs) {
      if (const ModelValue* value = valueOf(wire)) job.inputs.emplace(name, *value);
      release(wire);
    }
    return job;
  }

  // A value that nobody reads any more goes, and its memory is free for the next request.
  void release(const Wire& wire) {
    if (wire.part == Wire::kNetwork) return;
    State& from = states_[wire.part];
    if (--from.reads == 0) from.outputs.clear();
  }

  void send(size_t number) {
    std::optional<DeviceManager::Job> job;
    {
      const std::lock_guard lock(mutex_);
      job = jobOf(number);
    }
    execution_.replica->parts[number]->device().push(*std::move(job));
  }

  void ended(size_t number, Outputs outputs) {
    std::vector<size_t> ready;
    std::optional<Outputs> answer;
    {
      const std::lock_guard lock(mutex_);
      --left_;
      if (answered_) return;
      if (!outputs.ok()) {
        answered_ = true;
        answer = outputs.diagnostics();
      } else {
        State& state = states_[number];
        if (state.reads > 0) state.outputs = *std::move(outputs);
        for (const size_t reader : state.readers)
          if (--states_[reader].missing == 0) ready.push_back(reader);
        if (left_ == 0) {
          answered_ = true;
          answer = collect();
        } else if (!ready.empty() && execution_.wanted && !execution_.wanted()) {
          answered_ = true;
          answer = Error{.code = Code::Cancelled, .message = "nobody waits for the answer any more"};
        }
      }
    }
    if (answer) {
      // Runs that are still under way keep this alive, and not what the caller holds.
      const std::function<void(Outputs)> done = std::move(execution_.done);
      execution_.done = nullptr;
      done(*std::move(answer));
      return;
    }
    for (const size_t next : ready) send(next);
  }

  Outputs collect() const {
    std::vector<ModelValue> values;
    for (const Wire& wire : execution_.graph->outputs) {
      const ModelValue* value = valueOf(wire);
      values.push_back(value == nullptr ? ModelValue::absent() : *value);
    }
    return values;
  }

  Execution execution_;
  std::mutex mutex_;
  std::vector<State> states_;
  size_t left_ = 0;
  bool answered_ = false;
};

}  // namespace

bool startExecution(Execution& execution) {
  const auto course = std::make_shared<Course>(std::move(execution));
  if (course->start()) return true;
  execution = std::move(course->execution());
  return false;
}

}  // namespace aglow
