// Mixed load on a host whose devices fail: every request that is accepted is answered once, right to the bit, and no
// memory stays behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "graph/builder.h"
#include "runtime/device.h"
#include "runtime/host.h"
#include "runtime/module_source.h"
#include "runtime/network.h"
#include "runtime/partition.h"
#include "support/rng.h"

namespace aglow {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kColumns = 16;
constexpr int kNetworks = 4;

Type floats(int64_t rows, int64_t columns) { return Type(ElemKind::Float32, {rows, columns}); }

std::unique_ptr<Module> layers(int network, int64_t rows) {
  auto module = std::make_unique<Module>();
  Builder builder(*module->addFunction("main"));
  Value x = builder.input("x", floats(rows, kColumns));
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<float> weights;
    for (int64_t i = 0; i < kColumns * kColumns; ++i)
      weights.push_back(static_cast<float>((i * (network + 3) + layer) % 11) / 16 - 0.3F);
    x = builder.tanh(builder.matMul(x, builder.constant(Tensor::of(floats(kColumns, kColumns), weights))));
  }
  builder.output("y", x);
  return module;
}

CompileOptions reference() {
  CompileOptions options;
  options.backend = kReferenceBackend;
  return options;
}

// Networks 0 and 1 are whole, 2 is cut in three, and 3 joins requests, of four rows.
int64_t rowsOf(int network) { return network == 3 ? 4 : 1; }

std::shared_ptr<const NetworkSource> sourceOf(int network) {
  if (network != 2) return *aglow::sourceOf(*compileModule(layers(network, rowsOf(network)), reference()));
  CompileOptions upTo = reference();
  upTo.stopAfter = partitionPhase({});
  auto compiled = compileModule(layers(network, 1), upTo);
  return aglow::sourceOf(*partition(*compiled, {.parts = 3}, reference()), compiled->interfaces.front(), reference());
}

Tensor inputOf(uint64_t seed) {
  Rng rng(seed);
  std::vector<float> numbers;
  for (int64_t i = 0; i < kColumns; ++i) numbers.push_back(static_cast<float>((rng.next() % 1000)) / 500 - 1);
  return Tensor::of(floats(1, kColumns), numbers);
}

// One row through the network by itself. The interpreter computes each row apart, whatever its neighbours.
Tensor expected(int network, uint64_t seed) {
  const auto outputs = runModule(layers(network, 1), {{"x", inputOf(seed)}}, reference());
  return outputs->at("y");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMemory = false;  // sanitizers keep what was freed
#elif defined(__has_feature)
constexpr bool kOwnMemory = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kOwnMemory = true;
#endif

// Of this process, in memory now.
double megabytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

struct Tally {
  std::atomic<uint64_t> accepted = 0, refused = 0, answered = 0, right = 0, wrong = 0, cancelled = 0, expired = 0,
                        failed = 0, twice = 0;
};

TEST(Load, LosesNothingWhileDevicesFail) {
  // A longer load by hand: AGLOW_LOAD_SECONDS=600.
  const char* const asked = std::getenv("AGLOW_LOAD_SECONDS");
  const auto seconds = std::chrono::duration<double>(asked != nullptr ? std::atof(asked) : 2.0);
  constexpr uint64_t kSeeds = 16;
  std::vector<std::vector<Tensor>> answers(kNetworks);
  for (int network = 0; network < kNetworks; ++network)
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      answers[static_cast<size_t>(network)].push_back(expected(network, seed));

  Tally tally;
  {
    HostOptions options{.devices = *parseDevices("sim:interpreter,name=a,latency=20us "
                                                 "sim:interpreter,name=b,latency=20us sim:interpreter,name=c "
                                                 "interpreter,name=d"),
                        .queue = 256,
                        .probe = 2ms};
    auto created = HostManager::create(std::move(options));
    ASSERT_TRUE(created.ok()) << created.error().text();
    HostManager& host = **created;
    const auto add = [&](int network, const std::string& version) {
      NetworkOptions wanted{.version = version, .replicas = network == 0 ? 2 : 1, .queue = 64};
      if (network == 3) wanted.batch = {.rows = 4, .delay = 100us, .sizes = {4}};
      return host.addNetwork("n" + std::to_string(network), sourceOf(network), wanted);
    };
    for (int network = 0; network < kNetworks; ++network) ASSERT_TRUE(add(network, "0").ok());

    const auto end = std::chrono::steady_clock::now() + seconds;
    const auto goesOn = [&] { return std::chrono::steady_clock::now() < end; };
    std::vector<std::thread> threads;
    for (uint64_t client = 0; client < 8; ++client)
      threads.emplace_back([&, client] {
        Rng rng(client + 1);
        while (goesOn()) {
          const auto network = static_cast<int>((rng.next() % kNetworks));
          const uint64_t seed = (rng.next() % kSeeds);
          RunRequest request{.network = "n" + std::to_string(network),
                             .inputs = {{"x", ModelValue::of(inputOf(seed))}},
                             .priority = static_cast<int>((rng.next() % 3))};
          if ((rng.next() % 20) == 0)
            request.deadline = host.clock()->now() + std::chrono::microseconds((rng.next() % 2000));
          const auto times = std::make_shared<std::atomic<int>>(0);
          const Tensor& right = answers[static_cast<size_t>(network)][seed];
          const auto id = host.runNetwork(std::move(request), [&tally, &right, times](RunReply reply) {
            ++tally.answered;
            if (times->fetch_add(1) > 0) ++tally.twice;
            if (reply.outputs.ok()) {
              ++(reply.outputs->front().tensor() == right ? tally.right : tally.wrong);
              return;
            }
            const Code code = reply.outputs.diagnostics().errors().front().code;
            ++(code == Code::Cancelled ? tally.cancelled : code == Code::DeadlinePassed ? tally.expired : tally.failed);
          });
          if (!id.ok()) {
            ++tally.refused;
            std::this_thread::sleep_for(200us);
            continue;
          }
          ++tally.accepted;
          if ((rng.next() % 10) == 0) host.cancel(*id);
          if ((rng.next() % 4) == 0) std::this_thread::sleep_for(100us);
        }
      });
    // Devices fail and come back, all but the last.
    threads.emplace_back([&] {
      Rng rng(99);
      while (goesOn()) {
        DeviceManager& device = *host.devices()[(rng.next() % 3)];
        device.breakDown("pulled out");
        std::this_thread::sleep_for(std::chrono::milliseconds(5 + (rng.next() % 10)));
        device.repair();
        std::this_thread::sleep_for(std::chrono::milliseconds(10 + (rng.next() % 20)));
      }
    });
    // Versions are replaced under load.
    threads.emplace_back([&] {
      Rng rng(77);
      for (int version = 1; goesOn(); ++version) {
        const auto network = static_cast<int>((rng.next() % kNetworks));
        const std::string name = "n" + std::to_string(network);
        const auto before = host.network(name);
        if (add(network, std::to_string(version)).ok() && before.ok())
          EXPECT_TRUE(host.removeNetwork(name, before->version).ok());
        std::this_thread::sleep_for(15ms);
      }
    });
    // Memory once everything has run for a while, and at the end.
    std::this_thread::sleep_for(seconds / 4);
    const double early = megabytes();
    std::this_thread::sleep_until(end);
    const double late = megabytes();
    for (std::thread& thread : threads) thread.join();
    std::cout << "memory " << early << " MB early, " << late << " MB late\n";
    if (kOwnMemory) EXPECT_LT(late, early * 1.25 + 16);
    std::promise<void> drained;
    host.drain([&] { drained.set_value(); });
    drained.get_future().wait();
    EXPECT_EQ(host.statistics().underWay, 0U);
  }
  EXPECT_EQ(tally.accepted, tally.answered);
  EXPECT_EQ(tally.twice, 0U);
  EXPECT_EQ(tally.wrong, 0U);
  EXPECT_GT(tally.right, 0U);
  EXPECT_EQ(tally.answered, tally.right + tally.cancelled + tally.expired + tally.failed);
  std::cout << "accepted " << tally.accepted << ", refused " << tally.refused << ", right " << tally.right
            << ", cancelled " << tally.cancelled << ", expired " << tally.expired << ", failed " << tally.failed
            << "\n";
}

}  // namespace
}  // namespace aglow
