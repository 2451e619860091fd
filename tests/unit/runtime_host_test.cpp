// One host with networks on devices: requests, versions, bounds, batches, deadlines, failures.
#include "runtime/host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <thread>

#include "graph/builder.h"
#include "runtime/device.h"
#include "runtime/module_source.h"

namespace aglow {
namespace {

using namespace std::chrono_literals;

// y = x * factor, of so many rows.
std::shared_ptr<const NetworkSource> scaling(double factor, int64_t rows = 1, int64_t columns = 4) {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  const Value x = builder.input("x", Type(ElemKind::Float32, {rows, columns}));
  builder.output("y", builder.mul(x, builder.scalarLike(x, factor)));
  CompileOptions options;
  options.backend = kReferenceBackend;
  auto compiled = compileModule(std::move(module), options);
  EXPECT_TRUE(compiled.ok());
  return *sourceOf(*std::move(compiled));
}

Values rowsOf(std::vector<float> numbers, int64_t rows = 1) {
  const auto columns = static_cast<int64_t>(numbers.size()) / rows;
  return {{"x", ModelValue::of(Tensor::of(Type(ElemKind::Float32, {rows, columns}), numbers))}};
}

std::vector<double> numbersOf(RunReply& reply) {
  EXPECT_TRUE(reply.outputs.ok()) << reply.outputs.diagnostics().errors().front().text();
  return reply.outputs->front().tensor().doubles();
}

Code codeOf(const RunReply& reply) {
  return reply.outputs.ok() ? Code::Internal : reply.outputs.diagnostics().errors().front().code;
}

std::unique_ptr<HostManager> hostOf(std::string_view devices, HostOptions options = {}) {
  options.devices = *parseDevices(devices);
  auto host = HostManager::create(std::move(options));
  EXPECT_TRUE(host.ok()) << host.error().text();
  return *std::move(host);
}

// Accelerators that do nothing by themselves: time goes on when the test says so.
struct Simulated {
  explicit Simulated(std::string_view devices, HostOptions options = {}) : clock(std::make_shared<ManualClock>()) {
    options.clock = clock;
    options.devices = *parseDevices(devices);
    for (DeviceSpec& device : options.devices) device.simulation->inlined = true;
    auto made = HostManager::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.error().text();
    host = *std::move(made);
  }

  std::shared_ptr<ManualClock> clock;
  std::unique_ptr<HostManager> host;
};

bool ready(std::future<RunReply>& reply) { return reply.wait_for(0s) == std::future_status::ready; }

TEST(Host, RunsANetwork) {
  const auto host = hostOf("interpreter");
  ASSERT_TRUE(host->addNetwork("double", scaling(2)).ok());
  RunReply reply = host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})}).get();
  EXPECT_EQ(numbersOf(reply), (std::vector<double>{2, 4, 6, 8}));
  EXPECT_EQ(reply.version, "1");
  const HostStatistics statistics = host->statistics();
  EXPECT_EQ(statistics.networks.front().succeeded, 1U);
  EXPECT_GT(statistics.networks.front().total.quantile(0.99), 0);
}

TEST(Host, RunsShortRunsOnTheCallingThreadWhereItMay) {
  std::vector<DeviceSpec> devices = *parseDevices("interpreter");
  devices.front().shortRun = 1h;  // on any machine
  const auto host = *HostManager::create({.devices = devices});
  ASSERT_TRUE(host->addNetwork("double", scaling(2)).ok());
  // Whether the reply came on this thread; `then` is called with it.
  const auto repliesHere = [&](bool inPlace, const std::function<void()>& then) {
    const auto here = std::make_shared<std::promise<bool>>();
    const auto asked = host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4}), .inPlace = inPlace},
                                        [then, here, caller = std::this_thread::get_id()](RunReply) {
                                          then();
                                          here->set_value(std::this_thread::get_id() == caller);
                                        });
    EXPECT_TRUE(asked.ok());
    return here->get_future().get();
  };
  const auto nothing = [] {};
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(repliesHere(false, nothing));
  // Where nothing else runs; a run may have replied and not have ended yet.
  const auto within = std::make_shared<std::promise<void>>();
  bool was = false;
  for (int i = 0; i < 10'000 && !was; ++i)
    was = repliesHere(true, [&, caller = std::this_thread::get_id()] {
      if (std::this_thread::get_id() != caller) return;
      // A run that is asked for in the reply of another never begins within it.
      const auto asked = host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4}), .inPlace = true},
                                          [within, caller](RunReply) {
                                            EXPECT_NE(std::this_thread::get_id(), caller);
                                            within->set_value();
                                          });
      EXPECT_TRUE(asked.ok());
    });
  ASSERT_TRUE(was);
  within->get_future().wait();
}

TEST(Host, TellsWhatItHas) {
  const auto host = hostOf("interpreter");
  ASSERT_TRUE(host->addNetwork("double", scaling(2)).ok());
  const auto info = host->network("double");
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->ready && info->current);
  ASSERT_EQ(info->spec.inputs.size(), 1U);
  EXPECT_EQ(info->spec.inputs[0].name, "x");
  EXPECT_EQ(info->spec.inputs[0].text, "f32[1,4]");
  EXPECT_EQ(info->replicas, (std::vector<std::vector<std::string>>{{"interpreter"}}));
  EXPECT_EQ(host->network("single").error().code, Code::UnknownNetwork);
  EXPECT_EQ(codeOf(host->runNetwork({.network = "doubel"}).get()), Code::UnknownNetwork);
}

TEST(Host, AnswersWithTheFaultOfARun) {
  const auto host = hostOf("interpreter");
  ASSERT_TRUE(host->addNetwork("double", scaling(2)).ok());
  EXPECT_EQ(codeOf(host->runNetwork({.network = "double", .inputs = rowsOf({1, 2})}).get()), Code::BadBinding);
  EXPECT_EQ(codeOf(host->runNetwork({.network = "double"}).get()), Code::MissingBinding);
}

TEST(Host, SwitchesVersionsAtOnce) {
  const auto host = hostOf("interpreter");
  ASSERT_TRUE(host->addNetwork("scale", scaling(2)).ok());
  ASSERT_TRUE(host->addNetwork("scale", scaling(3), {.version = "2", .makeCurrent = false}).ok());
  const auto first = [&](std::string version) {
    RunReply reply = host->runNetwork({.network = "scale", .version = version, .inputs = rowsOf({1, 1, 1, 1})}).get();
    return numbersOf(reply).front();
  };
  EXPECT_EQ(first(""), 2);
  EXPECT_EQ(first("2"), 3);
  ASSERT_TRUE(host->setCurrent("scale", "2").ok());
  EXPECT_EQ(first(""), 3);
  EXPECT_EQ(first("1"), 2);
  ASSERT_TRUE(host->removeNetwork("scale", "2").ok());
  EXPECT_EQ(first(""), 2);
  EXPECT_FALSE(host->addNetwork("scale", scaling(3), {.version = "1"}).ok());
  ASSERT_TRUE(host->removeNetwork("scale").ok());
  EXPECT_EQ(host->removeNetwork("scale").error().code, Code::UnknownNetwork);
}

TEST(Host, TheVersionThatWasAddedLastTakesOver) {
  const auto host = hostOf("interpreter");
  for (const char* version : {"9", "10", "11"})
    ASSERT_TRUE(host->addNetwork("scale", scaling(2), {.version = version}).ok());
  ASSERT_TRUE(host->removeNetwork("scale", "11").ok());
  EXPECT_EQ(host->network("scale")->version, "10");
}

TEST(Host, HasMoreReplicasWhileRequestsWait) {
  const auto host = hostOf(
      "sim:interpreter,name=a,latency=1ms,queue=1 sim:interpreter,name=b,latency=1ms,queue=1 "
      "sim:interpreter,name=c,latency=1ms,queue=1",
      {.devices = {}, .probe = 1ms});
  EXPECT_FALSE(host->addNetwork("double", scaling(2), {.replicas = 3, .mostReplicas = 2}).ok());
  ASSERT_TRUE(host->addNetwork("double", scaling(2), {.mostReplicas = 3}).ok());
  const auto replicas = [&] { return host->statistics().networks.front().replicas; };
  EXPECT_EQ(replicas(), 1U);
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (replicas() < 3 && std::chrono::steady_clock::now() < until) {
    std::vector<std::future<RunReply>> replies;
    for (int i = 0; i < 30; ++i)
      replies.push_back(host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})}));
    for (std::future<RunReply>& reply : replies) {
      RunReply answer = reply.get();
      EXPECT_EQ(numbersOf(answer), (std::vector<double>{2, 4, 6, 8}));
    }
  }
  EXPECT_EQ(replicas(), 3U);
  for (const DeviceStatistics& device : host->statistics().devices) EXPECT_EQ(device.parts, 1U) << device.name;
  while (replicas() > 1 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(replicas(), 1U);
  EXPECT_EQ(host->statistics().networks.front().wanted, 1U);
}

TEST(Host, MakesNoReplicaThatHasNoRoom) {
  const auto host = hostOf("sim:interpreter,name=a,latency=1ms,queue=1 sim:interpreter,name=b,memory=1",
                           {.devices = {}, .probe = 1ms});
  ASSERT_TRUE(host->addNetwork("double", scaling(2), {.mostReplicas = 2}).ok());
  std::vector<std::future<RunReply>> replies;
  for (int i = 0; i < 60; ++i)
    replies.push_back(host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})}));
  for (std::future<RunReply>& reply : replies) EXPECT_TRUE(reply.get().outputs.ok());
  EXPECT_EQ(host->statistics().networks.front().replicas, 1U);
}

// Inputs of the next run are copied while the answer of the one before it is on its way.
TEST(Host, SimulatedCopiesGoBothWaysAtOnce) {
  Simulated simulated("sim:interpreter,copy=16");  // a second for four floats
  ASSERT_TRUE(simulated.host->addNetwork("double", scaling(2)).ok());
  auto first = simulated.host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})});
  auto second = simulated.host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})});
  simulated.clock->advance(2001ms);
  EXPECT_TRUE(ready(first));
  EXPECT_FALSE(ready(second));
  simulated.clock->advance(1000ms);
  EXPECT_TRUE(ready(second));
}

TEST(Host, SimulatedFailuresComeAndGo) {
  Simulated simulated("sim:interpreter,name=a,fails=10s,repair=1s", {.devices = {}, .probe = 1ms});
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  const auto becomes = [&](bool ready) {
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (host.network("double")->ready != ready && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    return host.network("double")->ready == ready;
  };
  for (uint64_t times = 1; times <= 2; ++times) {
    simulated.clock->advance(10s);
    EXPECT_TRUE(becomes(false));
    EXPECT_EQ(host.statistics().devices.front().failures, times);
    simulated.clock->advance(1s);
    EXPECT_TRUE(becomes(true));
  }
}

TEST(Host, RefusesWhatIsTooMuch) {
  Simulated simulated("sim:interpreter,latency=1ms,queue=1");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2), {.queue = 3}).ok());
  std::vector<std::future<RunReply>> replies;
  for (int i = 0; i < 5; ++i) replies.push_back(host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})}));
  EXPECT_FALSE(ready(replies[2]));
  ASSERT_TRUE(ready(replies[3]));
  EXPECT_EQ(codeOf(replies[3].get()), Code::Busy);
  EXPECT_EQ(codeOf(replies[4].get()), Code::Busy);
  simulated.clock->advance(100ms);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(replies[static_cast<size_t>(i)].get().outputs.ok());
  EXPECT_EQ(host.statistics().networks.front().refused, 2U);
  EXPECT_EQ(host.statistics().refused, 2U);
}

TEST(Host, RunsWhatMattersMoreFirst) {
  Simulated simulated("sim:interpreter,latency=1ms,queue=0");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  std::vector<int> order;
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1}), .priority = i},
                                [&order, i](const RunReply&) { order.push_back(i); })
                    .ok());
  simulated.clock->advance(100ms);
  EXPECT_EQ(order, (std::vector<int>{0, 3, 2, 1}));  // the first was running already
}

TEST(Host, EndsRequestsAtTheirDeadline) {
  Simulated simulated("sim:interpreter,latency=10ms,queue=0");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  auto running =
      host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1}), .deadline = simulated.clock->now() + 5ms});
  auto waiting =
      host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1}), .deadline = simulated.clock->now() + 40ms});
  auto patient = host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})});
  simulated.clock->advance(6ms);
  EXPECT_EQ(codeOf(running.get()), Code::DeadlinePassed);
  simulated.clock->advance(200ms);
  EXPECT_EQ(codeOf(waiting.get()), Code::DeadlinePassed);
  EXPECT_TRUE(patient.get().outputs.ok());
  EXPECT_EQ(host.statistics().networks.front().expired, 2U);
}

TEST(Host, TakesRequestsBack) {
  Simulated simulated("sim:interpreter,latency=10ms,queue=0");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  int answers = 0;
  Code code = Code::Internal;
  const auto done = [&](const RunReply& reply) {
    ++answers;
    code = codeOf(reply);
  };
  const auto running = host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})}, done);
  const auto waiting = host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})}, done);
  EXPECT_TRUE(host.cancel(*waiting));
  EXPECT_EQ(code, Code::Cancelled);
  EXPECT_FALSE(host.cancel(*waiting));
  EXPECT_TRUE(host.cancel(*running));
  simulated.clock->advance(100ms);
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(host.statistics().underWay, 0U);
  EXPECT_EQ(host.statistics().devices.front().runs, 1U);
}

TEST(Host, JoinsRequestsRowByRow) {
  Simulated simulated("sim:interpreter,latency=1ms,queue=0");
  HostManager& host = *simulated.host;
  // Of eight rows: each run is filled up to them.
  ASSERT_TRUE(host.addNetwork("double", scaling(2, 8, 2), {.batch = {.rows = 8, .delay = 2ms, .sizes = {8}}}).ok());
  auto one = host.runNetwork({.network = "double", .inputs = rowsOf({1, 2})});
  auto two = host.runNetwork({.network = "double", .inputs = rowsOf({3, 4, 5, 6}, 2)});
  simulated.clock->advance(1ms);
  EXPECT_FALSE(ready(one));
  simulated.clock->advance(100ms);
  RunReply first = one.get(), second = two.get();
  EXPECT_EQ(numbersOf(first), (std::vector<double>{2, 4}));
  EXPECT_EQ(numbersOf(second), (std::vector<double>{6, 8, 10, 12}));
  EXPECT_EQ(first.batchRows, 8);
  EXPECT_EQ(host.statistics().networks.front().runs, 1U);
  // What fills a run does not wait.
  auto full = host.runNetwork({.network = "double", .inputs = rowsOf(std::vector<float>(16, 1), 8)});
  simulated.clock->advance(4ms);
  EXPECT_TRUE(ready(full));
  // One that would not fit the network's other sizes fails alone.
  auto wrong = host.runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3})});
  simulated.clock->advance(100ms);
  EXPECT_EQ(codeOf(wrong.get()), Code::BadBinding);
}

TEST(Host, DrainsAndEnds) {
  Simulated simulated("sim:interpreter,latency=1ms");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  auto accepted = host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})});
  bool drained = false;
  host.drain([&] { drained = true; });
  EXPECT_FALSE(drained);
  EXPECT_EQ(codeOf(host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})}).get()), Code::Busy);
  simulated.clock->advance(10ms);
  EXPECT_TRUE(drained);
  EXPECT_TRUE(accepted.get().outputs.ok());
}

TEST(Host, AnswersRemovedNetworksRequestsFirst) {
  Simulated simulated("sim:interpreter,latency=1ms");
  HostManager& host = *simulated.host;
  ASSERT_TRUE(host.addNetwork("double", scaling(2)).ok());
  auto accepted = host.runNetwork({.network = "double", .inputs = rowsOf({1, 1, 1, 1})});
  ASSERT_TRUE(host.removeNetwork("double").ok());
  EXPECT_EQ(codeOf(host.runNetwork({.network = "double"}).get()), Code::UnknownNetwork);
  EXPECT_GT(host.statistics().devices.front().memoryUsed, 0);
  simulated.clock->advance(10ms);
  EXPECT_TRUE(accepted.get().outputs.ok());
  EXPECT_EQ(host.statistics().devices.front().memoryUsed, 0);
  EXPECT_EQ(host.statistics().devices.front().parts, 0U);
}

TEST(Host, SaysWhatIsMissingWhere) {
  const auto host = hostOf("sim:interpreter,name=a,memory=1K sim:interpreter,name=b,memory=2K");
  const auto added = host->addNetwork("large", scaling(2, 100, 100));
  ASSERT_FALSE(added.ok());
  const Error& error = added.diagnostics().errors().front();
  EXPECT_EQ(error.code, Code::TooLarge);
  EXPECT_NE(error.message.find("a has 1024 bytes free"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("b has 2048 bytes free"), std::string::npos) << error.message;
  for (const DeviceStatistics& device : host->statistics().devices) EXPECT_EQ(device.memoryUsed, 0);
  EXPECT_TRUE(host->networks().empty());
}

TEST(Host, RunsAgainElsewhere) {
  const auto host = hostOf("sim:interpreter,name=a,latency=5ms sim:interpreter,name=b,latency=5ms");
  ASSERT_TRUE(host->addNetwork("double", scaling(2), {.devices = {"a", "b"}}).ok());
  const std::string where = host->network("double")->replicas[0][0];
  auto reply = host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})});
  for (const auto& device : host->devices())
    if (device->name() == where) device->breakDown("pulled out");
  RunReply answer = reply.get();
  EXPECT_EQ(numbersOf(answer), (std::vector<double>{2, 4, 6, 8}));
  EXPECT_NE(host->network("double")->replicas[0][0], where);
  EXPECT_EQ(host->statistics().networks.front().retried, 1U);
}

TEST(Host, FailsWithTheReasonAndComesBack) {
  const auto host = hostOf("sim:interpreter,name=a,latency=1ms", {.devices = {}, .probe = 5ms});
  ASSERT_TRUE(host->addNetwork("double", scaling(2)).ok());
  DeviceManager& device = *host->devices().front();
  device.breakDown("pulled out");
  const auto answer = [&] { return host->runNetwork({.network = "double", .inputs = rowsOf({1, 2, 3, 4})}).get(); };
  const RunReply failed = answer();
  EXPECT_EQ(codeOf(failed), Code::Device);
  EXPECT_NE(failed.outputs.diagnostics().errors().front().message.find("pulled out"), std::string::npos);
  EXPECT_FALSE(host->network("double")->ready);
  device.repair();
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!host->network("double")->ready && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
  RunReply back = answer();
  EXPECT_EQ(numbersOf(back), (std::vector<double>{2, 4, 6, 8}));
}

}  // namespace
}  // namespace aglow
