// Memory on devices without one: where things lie, what is uploaded, and when state moves.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "backends/device/memory_plan.h"
#include "backends/device/steps.h"
#include "backends/device/weight_store.h"
#include "backends/state.h"
#include "in_child.h"
#include "inst/text.h"

namespace aglow {

namespace {

using device::MemoryPlan;
using device::WeightStore;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Type floats(int64_t count) { return {ElemKind::Float32, Shape{count}}; }

// Everything is used by something that computes, so nothing stays with the host.
Program programWith(std::vector<Region> regions) {
  Program program;
  program.arenaBytes = 256;
  for (Region& region : regions) {
    const RegionId id = program.add(std::move(region));
    program.instrs.push_back({.kind = Instr::Kind::Copy, .operands = {{id, Access::Out}, {id, Access::In}}});
  }
  return program;
}

TEST(DeviceMemoryPlan, CutsAtTheLargestBuffer) {
  std::vector<Region> regions;
  for (const int64_t count : {16, 32, 48, 250})
    regions.push_back({fmt::format("x{}", count), floats(count), {PlaceholderInit{}}});
  const std::vector<Program> programs = {programWith(std::move(regions))};
  MemoryPlan plan(programs);
  ASSERT_TRUE(plan.fit({.device = "d", .bufferBytes = 1000, .allBytes = 1 << 20}).ok());
  EXPECT_THAT(plan.buffers[device::kIo], ElementsAre(384, 1000));
  EXPECT_EQ(plan.slotOf("x48").offset, 192u);
  EXPECT_EQ(plan.slotOf("x250").buffer, 1u);
  EXPECT_EQ(plan.stagingBytes, 384u + 1024u);
}

TEST(DeviceMemoryPlan, CountsTheRunsThatHaveRoom) {
  const std::vector<Program> programs = {
      programWith({{"x", floats(64), {PlaceholderInit{}}}, {"w", floats(256), {ConstantInit{Tensor(floats(256))}}}})};
  const MemoryPlan plan(programs);  // 1024 bytes that runs share, 512 for each of them
  for (const auto& [bytes, runs] :
       std::map<uint64_t, uint64_t>{{0, 1}, {1024, 1}, {2047, 1}, {2048, 2}, {1 << 20, 2046}})
    EXPECT_EQ(plan.contextsIn(bytes), runs) << bytes;
}

TEST(DeviceMemoryPlan, SaysWhatHasNoRoom) {
  const std::vector<Program> programs = {programWith({{"w", floats(300), {ConstantInit{Tensor(floats(300))}}}})};
  MemoryPlan plan(programs);
  const auto refused = [&](uint64_t buffer, uint64_t all) {
    const Status status = plan.fit({.device = "0/0 (small)", .bufferBytes = buffer, .allBytes = all});
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::TooLarge);
    return status.error().message;
  };
  EXPECT_EQ(refused(1000, 9000),
            "1200 bytes are needed for 'w' (weights); one buffer of the device 0/0 (small) has at most 1000");
  EXPECT_THAT(refused(100, 9000), HasSubstr("256 bytes are needed for intermediate results"));
  EXPECT_EQ(refused(2000, 1400), "1472 bytes are needed on the device 0/0 (small), which has 1400");
  EXPECT_TRUE(plan.fit({.device = "d", .bufferBytes = 1200, .allBytes = 1472}).ok());
}

// A run may be asked to stop after a batch, so every batch ends with a kernel, wherever copies stand.
TEST(DeviceSteps, BatchesEndWithKernels) {
  constexpr size_t kTimes = 100;
  std::string text =
      "declare { %x = placeholder f32[4] %y = placeholder f32[4] %w = placeholder f32[4] }\n"
      "program @f(@in %x, @in %w, @out %y) arena 192 { %a = alloc f32[4] at 0 %b = alloc f32[4] at 64 "
      "%c = alloc f32[4] at 128 copy @out %b, @in %x ";
  for (size_t i = 0; i < kTimes; ++i)
    text +=
        "copy.start @out %a, @in %w token 1 copy.wait @out %a, @in %w token 1 Add @out %c, @in %a, @in %b "
        "Neg @out %b, @in %c ";
  auto program = parseProgram(text + "copy @out %y, @in %b dealloc %a dealloc %b dealloc %c }");
  ASSERT_TRUE(program.ok()) << program.error().text();
  for (size_t shift = 0; shift < 4; ++shift) {
    Program shifted = *program;
    const auto first = shifted.instrs.begin() + 3;  // after what is allocated
    shifted.instrs.insert(first, shift, *first);
    device::MemoryPlan plan(std::span(&shifted, 1));
    device::KernelTexts kernels;
    const device::Loaded loaded = makeSteps(shifted, plan, kernels, {});
    size_t batches = 0;
    for (const device::Step& step : loaded.steps)
      if (step.endsBatch) {
        ++batches;
        EXPECT_EQ(step.kind, device::Step::Kind::Kernel);
      }
    EXPECT_EQ(batches, kTimes * 4 / 64) << shift;
  }
}

class CountingMemory final : public device::DeviceMemory {
public:
  Result<std::shared_ptr<void>> allocate(uint64_t bytes) override {
    if (bytes > room) return Error{.code = Code::OutOfMemory, .message = "no room"};
    allocated.push_back(bytes);
    return std::shared_ptr<void>(std::make_shared<int>());
  }
  std::shared_ptr<void> shared(const Tensor& tensor) override {
    if (tensor.bytes() < sharedFrom) return nullptr;
    ++wrapped;
    return std::make_shared<int>();
  }
  Status upload(void*, uint64_t, const Tensor& tensor) override {
    uploaded += tensor.bytes();
    return {};
  }
  Status finish() override { return {}; }

  std::vector<uint64_t> allocated;
  int64_t uploaded = 0, wrapped = 0, sharedFrom = INT64_MAX;
  uint64_t room = UINT64_MAX;
};

Tensor filled(int64_t count, double value) {
  return Tensor::of(floats(count), std::vector<double>(static_cast<size_t>(count), value));
}

TEST(WeightStore, UploadsEqualWeightsOnce) {
  WeightStore store;
  TensorPool pool;
  CountingMemory memory;
  auto first =
      store.place(std::vector{filled(100, 1), filled(100, 2), filled(10, 3), filled(10, 3)}, &pool, 1 << 20, memory);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(memory.allocated, ElementsAre(448 + 448 + 64));
  EXPECT_EQ(memory.uploaded, 840);
  EXPECT_EQ(first->at(2).offset, first->at(3).offset);
  auto second = store.place(std::vector{filled(100, 2), filled(10, 4)}, &pool, 1 << 20, memory);
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(memory.allocated, ElementsAre(960, 64));
  EXPECT_EQ(second->at(0).buffer, first->at(1).buffer);
  EXPECT_EQ(second->at(0).offset, 448u);
  // What nobody uses goes, and is uploaded again.
  first->clear();
  second->clear();
  memory.uploaded = 0;
  ASSERT_TRUE(store.place(std::vector{filled(100, 2)}, &pool, 1 << 20, memory).ok());
  EXPECT_EQ(memory.uploaded, 400);
}

TEST(WeightStore, CutsAtTheLargestBufferAndForgetsWhatFails) {
  WeightStore store;
  TensorPool pool;
  CountingMemory memory;
  memory.room = 700;
  const std::vector tensors = {filled(100, 1), filled(100, 2), filled(200, 3)};
  EXPECT_EQ(store.place(tensors, &pool, 1000, memory).error().code, Code::OutOfMemory);
  memory = {};
  auto placed = store.place(tensors, &pool, 1000, memory);
  ASSERT_TRUE(placed.ok());
  EXPECT_THAT(memory.allocated, ElementsAre(896, 832));
  EXPECT_EQ(memory.uploaded, 1600);
}

TEST(WeightStore, UsesTheHostsMemoryWhereTheDeviceReachesIt) {
  WeightStore store;
  CountingMemory memory;
  memory.sharedFrom = 400;
  const Tensor large = filled(100, 1);
  auto one = store.place(std::vector{large, filled(10, 2)}, nullptr, 1 << 20, memory);
  auto other = store.place(std::vector{large}, nullptr, 1 << 20, memory);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(memory.wrapped, 1);
  EXPECT_EQ(memory.uploaded, 40);
  EXPECT_EQ(one->at(0).buffer, other->at(0).buffer);
}

class CountingDevice : public StateDevice {
public:
  Status toDevice(size_t index, const std::byte* bytes) override {
    sent.push_back(index);
    std::memcpy(&values[index], bytes, sizeof(float));
    return {};
  }
  Status toHost(size_t index, std::byte* bytes) override {
    if (lost) return Error{.code = Code::Device, .message = "lost"};
    fetched.push_back(index);
    std::memcpy(bytes, &values[index], sizeof(float));
    return {};
  }
  float values[2] = {};
  std::vector<size_t> sent, fetched;
  bool lost = false;
};

TEST(StateOnADevice, MovesOnlyWhenSomeoneAsks) {
  const std::vector<Program> programs = {
      programWith({{"a", floats(1), {SplatInit{1}}}, {"b", floats(1), {SplatInit{2}}}})};
  State state(programs);
  CountingDevice device;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(state.bringTo(device).ok());
    device.values[0] += 10;
    state.leftOn(device);
  }
  EXPECT_THAT(device.sent, ElementsAre(0, 1));
  EXPECT_TRUE(device.fetched.empty());
  EXPECT_THAT(state.read(0)->doubles(), ElementsAre(31));
  EXPECT_THAT(state.read(0)->doubles(), ElementsAre(31));
  EXPECT_THAT(device.fetched, ElementsAre(0));
  ASSERT_TRUE(state.write(1, filled(1, 7).ref()).ok());
  ASSERT_TRUE(state.bringTo(device).ok());
  EXPECT_THAT(device.sent, ElementsAre(0, 1, 1));
  EXPECT_EQ(device.values[1], 7);
  state.leftOn(device);
  device.lost = true;
  EXPECT_EQ(state.read(0).error().code, Code::Device);
  state.reset();
  EXPECT_THAT(state.read(0)->doubles(), ElementsAre(1));
}

TEST(StateOnADevice, IsReadInAForkedChildWhileItsParentReads) {
  struct Slow final : CountingDevice {
    Status toHost(size_t index, std::byte* bytes) override {
      reached.set_value();
      goOn.get_future().wait();
      return CountingDevice::toHost(index, bytes);
    }
    std::promise<void> reached, goOn;
  };
  const std::vector<Program> programs = {programWith({{"a", floats(1), {SplatInit{1}}}})};
  State state(programs);
  Slow device;
  ASSERT_TRUE(state.bringTo(device).ok());
  state.leftOn(device);
  std::thread reading([&] { EXPECT_TRUE(state.read(0).ok()); });
  device.reached.get_future().wait();
  EXPECT_TRUE(testing_support::inChild([&] {
    state.reset();
    const auto value = state.read(0);
    return value.ok() && value->doubles() == std::vector<double>{1};
  }));
  device.goOn.set_value();
  reading.join();
}

}  // namespace

}  // namespace aglow
