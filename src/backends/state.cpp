#include "backends/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "support/quote.h"

namespace aglow {

State::State(std::span<const Program> programs) {
  for (const Region* region : sharedRegions(programs)) {
    if (!region->isState()) continue;
    bindings_.push_back({region->name, region->type});
    initial_.push_back(*region);
    values_.emplace_back(region->type);
  }
  newest_.resize(values_.size());
  setInitial();
}

size_t State::find(std::string_view name) const {
  const auto it = std::find_if(bindings_.begin(), bindings_.end(), [&](const Binding& b) { return b.name == name; });
  return static_cast<size_t>(it - bindings_.begin());
}

int64_t State::bytes() const {
  int64_t sum = 0;
  for (const Tensor& value : values_) sum += value.bytes();
  return sum;
}

Result<Tensor> State::read(size_t index) {
  Tensor copy(bindings_[index].type);
  const SharedTurns::Turn turn(turns_, SharedTurns::Use::Reads);
  const std::lock_guard lock(mutex_);
  if (newest_[index] == Newest::Device) {
    AGLOW_OK(device_->toHost(index, values_[index].mutableData()));
    newest_[index] = Newest::Both;
  }
  std::memcpy(copy.mutableData(), values_[index].data(), static_cast<size_t>(copy.bytes()));
  return copy;
}

Status State::write(size_t index, const TensorRef& value) {
  const Binding& binding = bindings_[index];
  if (value.type == nullptr || *value.type != binding.type)
    return Error{.code = Code::BadBinding,
                 .message = fmt::format("expected {}, got {}", binding.type.text(),
                                        value.type == nullptr ? "nothing" : value.type->text()),
                 .where = fmt::format("state {}", quoted(binding.name))};
  const SharedTurns::Turn turn(turns_, SharedTurns::Use::Writes);
  std::memcpy(values_[index].mutableData(), value.data, static_cast<size_t>(binding.type.bytes()));
  newest_[index] = Newest::Host;
  return {};
}

void State::reset() {
  const SharedTurns::Turn turn(turns_, SharedTurns::Use::Writes);
  setInitial();
}

void State::setInitial() {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Tensor initial = initialValue(initial_[i]);
    std::memcpy(values_[i].mutableData(), initial.data(), static_cast<size_t>(initial.bytes()));
    newest_[i] = Newest::Host;
  }
}

Status State::bringTo(StateDevice& device) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (newest_[i] != Newest::Host) continue;
    AGLOW_OK(device.toDevice(i, values_[i].data()));
    newest_[i] = Newest::Both;
  }
  return {};
}

void State::leftOn(StateDevice& device) {
  const std::lock_guard lock(mutex_);
  device_ = &device;
  std::fill(newest_.begin(), newest_.end(), Newest::Device);
}

std::byte* State::address(std::string_view name) {
  const size_t index = find(name);
  AGLOW_CHECK(index < values_.size(), "there is no such state");
  return values_[index].mutableData();
}

SharedTurns::Use stateUse(const Program& program) {
  using Use = SharedTurns::Use;
  const std::vector<Extent> extents = program.extents();
  const auto isState = [&](RegionId id) {
    return id != kNoRegion && program[extents[static_cast<size_t>(id)].root].isState();
  };
  Use use = Use::None;
  for (const Instr& instr : program.instrs) {
    if (isState(instr.predicate)) use = std::max(use, Use::Reads);
    for (const Operand& operand : instr.operands)
      if (isState(operand.region)) use = std::max(use, writes(operand.access) ? Use::Writes : Use::Reads);
  }
  return use;
}

}  // namespace aglow
