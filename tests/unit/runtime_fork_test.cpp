// A child that fork() makes while a thread of its parent runs a network, or makes one: nothing waits for that thread.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "loaded_network.h"
#include "runtime/keyed_cache.h"
#include "runtime/network.h"

namespace aglow {
namespace {

std::shared_ptr<Network> doubling() {
  return testing_support::loadedNetwork(
      "module { placeholder @x : f32[2] placeholder @y : f32[2] func @main { %s = Add(@x, @x) Save(%s, @y) } }");
}

bool doubles(Network& network) {
  const std::map<std::string, ModelValue> values = {
      {"x", ModelValue::of(Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<double>{1, 2}))}};
  const auto outputs = network.run(0, valuesIn(values));
  return outputs.ok() && outputs->at(0).tensor().doubles() == std::vector<double>{2, 4};
}

// Whether this holds in a child. One that hangs is ended by a signal.
template <class Holds>
bool inChild(const Holds& holds) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(holds() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Stands still in the middle of a run, until it may go on.
class Pause : public RunObserver {
public:
  void begin(size_t /*instr*/, int /*thread*/) override {
    reached.set_value();
    goOn.get_future().wait();
  }
  void end(size_t /*instr*/, int /*thread*/) override {}

  std::promise<void> reached, goOn;
};

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
  EXPECT_TRUE(inChild([&] { return found(doubling); }));
  goOn.set_value();
  making.join();
  EXPECT_TRUE(found([]() -> std::shared_ptr<Network> { return nullptr; }));  // it is there
}

}  // namespace
}  // namespace aglow
