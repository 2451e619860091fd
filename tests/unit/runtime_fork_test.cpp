// A child that fork() makes while a thread of its parent runs a network, or makes one: nothing waits for that thread.
#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <thread>

#include "in_child.h"
#include "loaded_network.h"
#include "pause.h"
#include "runtime/keyed_cache.h"
#include "runtime/network.h"

namespace aglow {
namespace {

using testing_support::inChild;
using testing_support::Pause;

std::shared_ptr<Network> doubling(const BackendOptions& options = {}) {
  return testing_support::loadedNetwork(
      "module { placeholder @x : f32[2] placeholder @y : f32[2] func @main { %s = Add(@x, @x) Save(%s, @y) } }",
      options);
}

bool doubles(Network& network) {
  const std::map<std::string, ModelValue> values = {
      {"x", ModelValue::of(Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<double>{1, 2}))}};
  const auto outputs = network.run(0, valuesIn(values));
  return outputs.ok() && outputs->at(0).tensor().doubles() == std::vector<double>{2, 4};
}

TEST(Fork, AChildRunsANetworkThatWasRunning) {
  const std::shared_ptr<Network> network = doubling();
  const Tensor x(Type(ElemKind::Float32, Shape{2})), y(Type(ElemKind::Float32, Shape{2}));
  Pause pause;
  std::thread running([&] { EXPECT_TRUE(network->run(0, std::vector{x.ref()}, std::vector{y.ref()}, &pause).ok()); });
  pause.reached.get_future().wait();
  EXPECT_TRUE(inChild([&] { return doubles(*network); }));
  pause.goOn.set_value();
  running.join();
  EXPECT_TRUE(doubles(*network));
}

// All contexts are taken, and somebody waits for one.
TEST(Fork, AChildFindsAllContextsFree) {
  const std::shared_ptr<Network> network = doubling({.contexts = 2, .queue = 1});
  const Tensor x(Type(ElemKind::Float32, Shape{2}));
  const Tensor y[] = {Tensor(x.type()), Tensor(x.type())};
  Pause pauses[2];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i)
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(network->run(0, std::vector{x.ref()}, std::vector{y[i].ref()}, &pauses[i]).ok()); });
  for (Pause& pause : pauses) pause.reached.get_future().wait();
  threads.emplace_back([&] { EXPECT_TRUE(doubles(*network)); });
  EXPECT_TRUE(inChild([&] {
    std::vector<std::future<bool>> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(std::async(std::launch::async, [&] { return doubles(*network); }));
    return std::all_of(runs.begin(), runs.end(), [](auto& run) { return run.get(); });
  }));
  for (Pause& pause : pauses) pause.goOn.set_value();
  for (std::thread& thread : threads) thread.join();
}

TEST(Fork, AChildMakesWhatWasBeingMade) {
  KeyedCache<Network> cache(4);
  std::promise<void> reached, goOn;
  const auto found = [&](auto make) {
    auto network = cache.findOrMake("doubling", [&]() -> Diagnosed<std::shared_ptr<Network>> { return make(); });
    return network.ok() && doubles(**network);
  };
  std::thread making([&] {
    EXPECT_TRUE(found([&] {
      reached.set_value();
      goOn.get_future().wait();
      return doubling();
    }));
  });
  reached.get_future().wait();
  EXPECT_TRUE(inChild([&] { return found([] { return doubling(); }); }));
  goOn.set_value();
  making.join();
  EXPECT_TRUE(found([]() -> std::shared_ptr<Network> { return nullptr; }));  // it is there
}

}  // namespace
}  // namespace aglow
