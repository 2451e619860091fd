// Hosts of the C and C++ interfaces: many networks on many devices.
#include <gmock/gmock.h>

#include <fstream>
#include <future>

#include "aglow/aglow.hpp"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kDouble = R"(module {
  placeholder @x : f32[1,3]
  placeholder @y : f32[1,3]
  func @main {
    %d = Add(@x, @x)
    Save(%d, @y)
  }
}
)";

std::string writeGraph(const std::string& text) {
  // Tests run at the same time in processes of their own.
  std::string path = ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".graph";
  std::ofstream(path) << text;
  return path;
}

const std::vector<int64_t> kDims = {1, 3};
const std::vector<float> kX = {1, 2, 3};

aglow_tensor input() { return {"x", AGLOW_FLOAT32, kDims.size(), kDims.data(), kX.data()}; }

std::vector<float> firstOf(const aglow::Results& results) {
  const float* const data = results.data<float>(0);
  return {data, data + 3};
}

TEST(HostApi, RunsNetworks) {
  aglow::Host host("interpreter sim:interpreter,name=card");
  aglow_network_options wanted = {};
  wanted.replicas = 2;
  host.add("double", writeGraph(kDouble), aglow::Options().backend("interpreter"), wanted);
  EXPECT_THAT(firstOf(host.run("double", {input()})), ElementsAre(2, 4, 6));
  EXPECT_EQ(host.statistics("double").succeeded, 1U);
  EXPECT_EQ(host.statistics("double").replicas, 2U);
  host.remove("double");
  EXPECT_THROW(host.run("double", {input()}), aglow::Error);
}

TEST(HostApi, RepliesOnceAndTakesBack) {
  aglow::Host host("sim:interpreter,latency=20ms");
  host.add("double", writeGraph(kDouble), aglow::Options().backend("interpreter"));
  const aglow_tensor given = input();
  aglow_host_request request = {};
  request.network = "double";
  request.inputs = &given;
  request.count = 1;
  std::promise<std::vector<float>> right;
  std::promise<std::string> wrong;
  host.submit(request, [&](const std::function<aglow::Results()>& results) { right.set_value(firstOf(results())); });
  const uint64_t id = host.submit(request, [&](const std::function<aglow::Results()>& results) {
    try {
      results();
    } catch (const aglow::Error& error) {
      wrong.set_value(error.what());
    }
  });
  EXPECT_TRUE(host.cancel(id));
  EXPECT_FALSE(host.cancel(id));
  EXPECT_THAT(wrong.get_future().get(), HasSubstr("E902"));
  EXPECT_THAT(right.get_future().get(), ElementsAre(2, 4, 6));
  request.timeout_us = 1;
  aglow_results* results = nullptr;
  EXPECT_EQ(aglow_host_run(host.handle(), &request, &results), AGLOW_OUT_OF_RESOURCES);
  EXPECT_THAT(aglow_error_text(), HasSubstr("E405"));
  host.drain();
  EXPECT_EQ(aglow_host_run(host.handle(), &request, &results), AGLOW_OUT_OF_RESOURCES);
}

TEST(HostApi, SaysWhatIsWrong) {
  aglow_host* host = nullptr;
  EXPECT_EQ(aglow_host_new("what", &host), AGLOW_USAGE);
  EXPECT_EQ(host, nullptr);
  EXPECT_EQ(aglow_host_new(nullptr, nullptr), AGLOW_USAGE);
  ASSERT_EQ(aglow_host_new("sim:interpreter,name=card,memory=8", &host), AGLOW_OK);
  aglow_options* const options = aglow_options_new();
  aglow_options_set_backend(options, "interpreter");
  EXPECT_EQ(aglow_host_add(host, "double", writeGraph(kDouble).c_str(), options, nullptr), AGLOW_OUT_OF_RESOURCES);
  EXPECT_THAT(aglow_error_text(), HasSubstr("card has 8 bytes free"));
  EXPECT_EQ(aglow_host_add(host, "double", "/nowhere.onnx", options, nullptr), AGLOW_FILE);
  aglow_network_options wanted = {};
  wanted.criterion = "taste";
  EXPECT_EQ(aglow_host_add(host, "double", "/nowhere.onnx", options, &wanted), AGLOW_USAGE);
  EXPECT_EQ(aglow_host_remove(host, "double", nullptr), AGLOW_USAGE);
  aglow_host_request request = {};
  request.network = "double";
  aglow_results* results = nullptr;
  EXPECT_EQ(aglow_host_run(host, &request, &results), AGLOW_USAGE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("E105"));
  aglow_options_free(options);
  aglow_host_free(host);
}

}  // namespace
