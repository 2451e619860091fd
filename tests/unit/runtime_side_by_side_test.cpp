// Runs of one network from several threads at once: the same bits as one after the other, within the bounds of
// contexts, queue and memory, and with state in order.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "host_backends.h"
#include "loaded_network.h"
#include "pause.h"
#include "runtime/threads.h"
#include "support/machine.h"
#include "support/rng.h"

namespace aglow {
namespace {

using testing_support::loadedNetwork;
using testing_support::Pause;

// Intermediate results of several kinds, products that are worth several threads, and instructions that run side by
// side.
constexpr const char* kProducts = R"(module {
  placeholder @x : f32[64,64]
  placeholder @y : f32[64,64]
  func @main {
    %t = Transpose(@x) {perm = [1, 0]}
    %p = MatMul(@x, %t)
    %q = Softmax(%p)
    %r = MatMul(%p, %p)
    %s = MatMul(%q, %r)
    Save(%s, @y)
  }
})";
// A block of a network for phones, whose instructions run part by part.
constexpr const char* kBlock = R"(module {
  placeholder @x : f32[1,32,14,14]
  constant @deep : f32[192,1,3,3] = splat 0.125
  constant @narrow : f32[32,192,1,1] = splat 0.03125
  constant @wide : f32[192,32,1,1] = splat 0.0625
  placeholder @y : f32[1,192,14,14]
  func @main {
    %a = Conv(@x, @wide)
    %b = Relu(%a)
    %c = Conv(%b, @deep) {pads = [1, 1, 1, 1], group = 192}
    %d = Relu(%c)
    %e = Conv(%d, @narrow)
    %f = Add(%e, @x)
    %g = Conv(%f, @wide)
    %h = Exp(%g)
    Save(%h, @y)
  }
})";
// One function changes all elements of the state alike, one looks at them, one has nothing to do with them.
constexpr const char* kShared = R"(module {
  state @count : f32[512] = splat 0
  placeholder @step : f32[512]
  placeholder @y : f32[512]
  func @add {
    %sum = Add(@count, @step)
    Save(%sum, @count)
    Save(%sum, @y)
  }
  func @look {
    %twice = Add(@count, @count)
    Save(%twice, @y)
  }
  func @alone {
    %twice = Add(@step, @step)
    Save(%twice, @y)
  }
})";

void onThreads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
}

Tensor randomRow(const Type& type, uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values;
  for (int64_t i = 0; i < type.elements(); ++i) values.push_back(rng.real(-0.2, 0.2));
  return Tensor::fromDoubles(type, values);
}

class SideBySide : public ::testing::TestWithParam<std::string> {
protected:
  std::shared_ptr<Network> loaded(std::string_view text, BackendOptions options = {}) const {
    options.threads = 2;
    startThreads(options);
    return loadedNetwork(text, options, GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, SideBySide, ::testing::ValuesIn(testing_support::hostBackends()));

Status runOn(Network& network, const Tensor& x, const Tensor& y, size_t function = 0, RunObserver* observer = nullptr) {
  return network.run(function, std::vector{x.ref()}, std::vector{y.ref()}, observer);
}

TEST_P(SideBySide, GivesTheSameBitsAsOneAfterTheOther) {
  struct Load {
    int threads, contexts;
    const char* network;
  };
  for (const Load load : {Load{8, 8, kProducts}, Load{16, 3, kProducts}, Load{16, 16, kProducts}, Load{4, 1, kProducts},
                          Load{4, 4, kBlock}}) {
    const std::shared_ptr<Network> network = loaded(load.network, {.contexts = load.contexts});
    EXPECT_EQ(network->facts().contexts, load.contexts);
    const Type &in = network->inputs(0)[0].type, &out = network->outputs(0)[0].type;
    std::vector<Tensor> inputs, expected;
    for (int t = 0; t < load.threads; ++t) {
      inputs.push_back(randomRow(in, static_cast<uint64_t>(t)));
      ASSERT_TRUE(runOn(*network, inputs.back(), expected.emplace_back(out)).ok());
    }
    onThreads(load.threads, [&](int t) {
      const auto number = static_cast<size_t>(t);
      for (int run = 0; run < 8; ++run) {
        const Tensor y(out);
        EXPECT_TRUE(runOn(*network, inputs[number], y).ok());
        EXPECT_TRUE(y == expected[number]);
      }
    });
  }
}

TEST_P(SideBySide, RefusesMoreCallersThanMayWait) {
  const std::shared_ptr<Network> network = loaded(kProducts, {.contexts = 1, .queue = 0});
  const Tensor x = randomRow(network->inputs(0)[0].type, 1), y(network->outputs(0)[0].type), z(y.type());
  Pause pause;
  std::thread running([&] { EXPECT_TRUE(runOn(*network, x, y, 0, &pause).ok()); });
  pause.reached.get_future().wait();
  const Status busy = runOn(*network, x, z);
  ASSERT_FALSE(busy.ok());
  EXPECT_EQ(busy.error().code, Code::Busy);
  EXPECT_EQ(busy.error().message, "0 callers wait already, where 1 runs may go side by side");
  pause.goOn.set_value();
  running.join();
  ASSERT_TRUE(runOn(*network, x, z).ok());
  EXPECT_TRUE(y == z);
}

TEST_P(SideBySide, HasNoMoreContextsThanMemoryAllows) {
  const auto contexts = [&](int64_t limit) {
    return loaded(kProducts, {.memoryLimit = limit, .contexts = 5})->facts().contexts;
  };
  const std::shared_ptr<Network> network = loaded(kProducts);
  EXPECT_EQ(network->facts().contexts, defaultContexts());
  const int64_t each = network->facts().arenaBytes + network->inputs(0)[0].type.bytes() +
                       network->outputs(0)[0].type.bytes() + 64 * 48 * 48;  // the interpreter's locals, rather too many
  EXPECT_EQ(contexts(0), 5);
  EXPECT_EQ(contexts(100 * each), 5);
  EXPECT_GE(contexts(2 * each), 2);
  const int few = contexts(network->facts().arenaBytes * 2 + network->inputs(0)[0].type.bytes());
  EXPECT_GE(few, 1);
  EXPECT_LE(few, 2);
}

TEST_P(SideBySide, RunsThatChangeStateTakeTurnsAndOthersSeeAWholeOne) {
  const std::shared_ptr<Network> network = loaded(kShared, {.contexts = 4});
  const size_t add = *network->find("add"), look = *network->find("look"), alone = *network->find("alone");
  const Type& type = network->outputs(add)[0].type;
  const Tensor ones = Tensor::fromDoubles(type, std::vector<double>(512, 1));
  const auto allEqual = [](const Tensor& tensor) { return tensor.isSplat(); };
  onThreads(6, [&](int t) {
    for (int i = 0; i < 50; ++i) {
      const Tensor y(type);
      if (t % 3 == 0) {
        EXPECT_TRUE(runOn(*network, ones, y, add).ok());
      } else if (t % 3 == 1) {
        EXPECT_TRUE(network->run(look, {}, std::vector{y.ref()}).ok());
        EXPECT_TRUE(allEqual(*network->state(0)));
      } else {
        EXPECT_TRUE(runOn(*network, ones, y, alone).ok());
        EXPECT_EQ(y.doubles()[7], 2);
      }
      EXPECT_TRUE(allEqual(y));
    }
  });
  EXPECT_EQ(network->state(0)->doubles()[511], 100);
}

TEST_P(SideBySide, RunsWithoutStateDoNotWaitForOneThatChangesIt) {
  const std::shared_ptr<Network> network = loaded(kShared, {.contexts = 2, .queue = 0});
  const size_t add = *network->find("add"), look = *network->find("look"), alone = *network->find("alone");
  const Type& type = network->outputs(add)[0].type;
  const Tensor ones = Tensor::fromDoubles(type, std::vector<double>(512, 1)), y(type), z(type);
  Pause pause;
  std::thread running([&] { EXPECT_TRUE(runOn(*network, ones, y, add, &pause).ok()); });
  pause.reached.get_future().wait();
  EXPECT_TRUE(runOn(*network, ones, z, alone).ok());
  EXPECT_EQ(z.doubles()[0], 2);
  EXPECT_EQ(network->run(look, {}, std::vector{z.ref()}).error().code, Code::Busy);
  pause.goOn.set_value();
  running.join();
  ASSERT_TRUE(network->run(look, {}, std::vector{z.ref()}).ok());
  EXPECT_EQ(z.doubles()[0], 2);
}

}  // namespace
}  // namespace aglow
