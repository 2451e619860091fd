// Parts onto devices: Figure 10 of the Glow paper, each part compiled once a kind of device, all or nothing.
#include "runtime/provisioner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "runtime/device.h"
#include "runtime/host.h"

namespace aglow {
namespace {

// A network of parts in a row, each of so many bytes, that hands its input on.
class RowOfParts : public NetworkSource {
public:
  explicit RowOfParts(const std::vector<int64_t>& bytes) {
    spec_.inputs = {{.name = "x"}};
    spec_.outputs = {{.name = "y"}};
    for (size_t i = 0; i < bytes.size(); ++i) {
      NetworkPart part{.name = "part" + std::to_string(i)};
      part.inputs["in"] = i == 0 ? Wire{.name = "x"} : Wire{.part = i - 1, .output = 0};
      part.outputs = {"out"};
      part.cost = {.microseconds = 1, .constantBytes = bytes[i]};
      graph_.parts.push_back(part);
    }
    graph_.outputs = {{.part = bytes.size() - 1, .output = 0}};
  }

  const NetworkSpec& spec() const override { return spec_; }
  const PartGraph& graph() const override { return graph_; }
  Diagnosed<std::shared_ptr<CompiledPart>> compile(size_t part, const std::string& backend) const override {
    ++compiled;
    if (compiling) compiling();
    if (refuses == backend) return Error{.code = Code::UnsupportedOp, .message = "not there"};
    return std::shared_ptr<CompiledPart>(std::make_shared<Compiled>(graph_.parts[part].cost.constantBytes));
  }

  mutable std::atomic<int> compiled = 0;
  std::function<void()> compiling;
  std::string refuses;

private:
  struct Loaded : LoadedPart {
    explicit Loaded(int64_t bytes) : bytes_(bytes) {}
    Outputs run(const Values& inputs) override { return std::vector<ModelValue>{inputs.at("in")}; }
    int64_t bytes() const override { return bytes_; }
    int64_t bytes_;
  };
  struct Compiled : CompiledPart {
    explicit Compiled(int64_t bytes) : bytes_(bytes) {}
    Diagnosed<std::unique_ptr<LoadedPart>> load(const BackendOptions&) const override {
      return std::unique_ptr<LoadedPart>(std::make_unique<Loaded>(bytes_));
    }
    int64_t bytes_;
  };

  NetworkSpec spec_;
  PartGraph graph_;
};

std::unique_ptr<HostManager> hostOf(const std::string& devices) {
  auto host = HostManager::create({.devices = *parseDevices(devices)});
  EXPECT_TRUE(host.ok()) << host.error().text();
  return *std::move(host);
}

std::string fiveCards(const std::string& memory) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "sim:interpreter,name=card" + std::to_string(i) + ",memory=" + memory + " ";
  return text;
}

std::set<std::string> devicesOf(const std::vector<std::string>& replica) { return {replica.begin(), replica.end()}; }

// Four networks on five accelerators: A and B are partitioned, and B is there twice.
TEST(Provisioner, DoesFigure10) {
  const auto host = hostOf(fiveCards("100K"));
  ASSERT_TRUE(host->addNetwork("A", std::make_shared<RowOfParts>(std::vector<int64_t>{60'000, 50'000})).ok());
  ASSERT_TRUE(
      host->addNetwork("B", std::make_shared<RowOfParts>(std::vector<int64_t>{40'000, 30'000}), {.replicas = 2}).ok());
  ASSERT_TRUE(host->addNetwork("C", std::make_shared<RowOfParts>(std::vector<int64_t>{60'000})).ok());
  ASSERT_TRUE(host->addNetwork("D", std::make_shared<RowOfParts>(std::vector<int64_t>{20'000})).ok());
  const NetworkInfo a = *host->network("A"), b = *host->network("B");
  ASSERT_EQ(a.replicas.size(), 1U);
  EXPECT_EQ(devicesOf(a.replicas[0]).size(), 2U);
  ASSERT_EQ(b.replicas.size(), 2U);
  EXPECT_EQ(devicesOf(b.replicas[0]).size(), 2U);
  for (const std::string& device : b.replicas[0]) EXPECT_FALSE(devicesOf(b.replicas[1]).contains(device)) << device;
  size_t parts = 0;
  for (const DeviceStatistics& device : host->statistics().devices) {
    parts += device.parts;
    EXPECT_GT(device.parts, 0U) << device.name;
    EXPECT_LE(device.memoryUsed, device.memoryLimit) << device.name;
  }
  EXPECT_EQ(parts, 8U);
  const Tensor x = Tensor::ints({1, 2, 3});
  for (const char* name : {"A", "B", "C", "D"}) {
    RunReply reply = host->runNetwork({.network = name, .inputs = {{"x", ModelValue::of(x)}}}).get();
    ASSERT_TRUE(reply.outputs.ok()) << name;
    EXPECT_EQ(reply.outputs->front().tensor(), x);
  }
}

TEST(Provisioner, CompilesEachPartOncePerKind) {
  const auto source = std::make_shared<RowOfParts>(std::vector<int64_t>{100, 100, 100});
  const auto host = hostOf(fiveCards("1M"));
  ASSERT_TRUE(host->addNetwork("n", source, {.replicas = 4}).ok());
  EXPECT_EQ(source->compiled, 3);
}

// Large parts find room although small ones would sit better on the emptier devices first.
TEST(Provisioner, PacksTightly) {
  const auto host = hostOf("sim:interpreter,name=a,memory=100 sim:interpreter,name=b,memory=60");
  EXPECT_TRUE(host->addNetwork("n", std::make_shared<RowOfParts>(std::vector<int64_t>{40, 20, 60, 40})).ok());
  EXPECT_FALSE(host->addNetwork("m", std::make_shared<RowOfParts>(std::vector<int64_t>{1})).ok());
}

TEST(Provisioner, LeavesNothingWhereOnePartFails) {
  const auto host = hostOf("sim:interpreter,name=a,memory=100 interpreter,name=b,memory=100");
  const auto source = std::make_shared<RowOfParts>(std::vector<int64_t>{60, 60});
  source->refuses = "interpreter";
  const auto added = host->addNetwork("n", source);
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.diagnostics().errors().front().code, Code::UnsupportedOp);
  for (const DeviceStatistics& device : host->statistics().devices) EXPECT_EQ(device.memoryUsed, 0) << device.name;
}

// One that is loaded elsewhere when the device fails under it.
TEST(Provisioner, TriesAgainWhereADeviceFailsMeanwhile) {
  const auto host = hostOf("sim:interpreter,name=a sim:interpreter,name=b");
  const auto source = std::make_shared<RowOfParts>(std::vector<int64_t>{60});
  source->compiling = [&] { host->devices()[0]->breakDown("pulled out"); };
  ASSERT_TRUE(host->addNetwork("n", source).ok());
  EXPECT_EQ(host->network("n")->replicas, (std::vector<std::vector<std::string>>{{"b"}}));
  EXPECT_EQ(source->compiled, 1);
}

TEST(Provisioner, SaysWhatIsMissingForEachPart) {
  const auto host = hostOf("sim:interpreter,name=a,memory=100 sim:interpreter,name=b,memory=50");
  const auto added = host->addNetwork("n", std::make_shared<RowOfParts>(std::vector<int64_t>{90, 80}));
  ASSERT_FALSE(added.ok());
  const std::string message = added.diagnostics().errors().front().message;
  EXPECT_NE(message.find("part1 needs 80 bytes: a has 100 bytes free; b has 50 bytes free, 30 too few"),
            std::string::npos)
      << message;
}

TEST(Devices, AreReadFromWords) {
  const auto specs = parseDevices("cpu:0-1,memory=2G;sim:interpreter,name=card,latency=50us,copy=1G,lanes=2 sim sim");
  ASSERT_TRUE(specs.ok()) << specs.error().text();
  ASSERT_EQ(specs->size(), 4U);
  EXPECT_EQ((*specs)[0].cores, (std::vector<int>{0, 1}));
  EXPECT_EQ((*specs)[0].memory, int64_t{2} << 30);
  EXPECT_EQ((*specs)[1].name, "card");
  EXPECT_EQ((*specs)[1].simulation->latency.count(), 50'000);
  EXPECT_EQ((*specs)[3].name, "sim#1");
  for (const char* wrong : {"cpu:3-1", "cpu:x", "cpu:0,0", "cpu:0 cpu:0-1", "sim,memory=-1", "sim,memory=2X",
                            "sim,fast", "sim,what=1", "interpreter,latency=1us", "interpreter,fails=5s", "sim,fails=5",
                            "sim,name=a sim,name=a", ",", "sim,lanes=5000"})
    EXPECT_FALSE(parseDevices(wrong).ok()) << wrong;
  EXPECT_EQ(HostManager::create({.devices = {{.name = "x", .backend = "nothing"}}}).error().code, Code::Usage);
  EXPECT_FALSE(HostManager::create({.devices = *parseDevices("cpu:4000")}).ok());
}

}  // namespace
}  // namespace aglow
