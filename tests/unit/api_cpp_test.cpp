#include "aglow/aglow.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "counter_module.h"

namespace {

using aglow::testing_support::kCounter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string writeGraph(const std::string& text) {
  // Tests run at the same time in processes of their own.
  std::string path = ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".graph";
  std::ofstream(path) << text;
  return path;
}

TEST(CppApi, RequestsOfSeveralThreadsShareOneState) {
  aglow::Model model(writeGraph(kCounter), aglow::Options().contexts(2).queue(4));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&model] {
      const std::vector<float> step = {1, 2};
      std::vector<float> total(2);
      aglow::Request add = model.function("add").request();
      add.bindInput(0, step.data(), step.size());
      add.bindOutput(0, total.data(), total.size());
      for (int i = 0; i < 50; ++i) {
        add.run();
        EXPECT_EQ(total[1], 2 * total[0]);  // nobody else was in between
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(model.state<float>("count"), ElementsAre(201, 402));
}

TEST(CppApi, FunctionsShareOneState) {
  aglow::Model model(writeGraph(kCounter));
  ASSERT_EQ(model.functions().size(), 2U);
  aglow::Function &add = model.function("add"), &reset = model.function("reset");
  EXPECT_EQ(add.inputs()[0].name, "step");
  EXPECT_EQ(add.findOutput("total"), 0);
  EXPECT_TRUE(reset.inputs().empty());
  const std::vector<float> step = {10, 20};
  std::vector<float> total(2);
  add.bindInput(0, step.data(), step.size());
  add.bindOutput(0, total.data(), total.size());
  add.run();
  reset.run();
  add.run();
  EXPECT_THAT(total, ElementsAre(10, 20));
  EXPECT_EQ(model.states()[0].name, "count");
  EXPECT_THAT(model.state<float>("count"), ElementsAre(10, 20));
  model.setState("count", std::vector<float>{5, 6});
  add.run();
  EXPECT_THAT(total, ElementsAre(15, 26));
  model.resetState();
  EXPECT_THAT(model.state<float>("count"), ElementsAre(1, 2));
}

TEST(CppApi, FaultsAreExceptions) {
  aglow::Model model(writeGraph(kCounter));
  const auto text = [](const auto& body) {
    try {
      body();
    } catch (const aglow::Error& error) {
      EXPECT_EQ(error.status(), AGLOW_USAGE);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(text([&] { model.run(); }), HasSubstr("none is named main"));
  EXPECT_THAT(text([&] { model.function("ad"); }), HasSubstr("did you mean 'add'"));
  EXPECT_THAT(text([&] { model.state<float>("total"); }), HasSubstr("no state 'total'"));
  EXPECT_THAT(text([&] { model.setState("count", std::vector<float>{1}); }), HasSubstr("takes 8 bytes"));
}

}  // namespace
