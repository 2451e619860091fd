// Packages through the C and C++ interface: ready to run, or refused with the status of the program's exit codes.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "aglow/aglow.h"
#include "aglow/aglow.hpp"
#include "counter_module.h"
#include "package_writer.h"
#include "support/hash.h"

namespace {

namespace fs = std::filesystem;
namespace testing_support = aglow::testing_support;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::kCounter;

struct ApiPackages : ::testing::Test {
  ApiPackages() : folder(fs::temp_directory_path() / ("aglow-api-packages-" + std::to_string(::getpid()))) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    path = (folder / "counter.aglow").string();
  }
  ~ApiPackages() override { fs::remove_all(folder); }

  void write(const std::string& cpu = {}) const { testing_support::writePackage(path, kCounter, cpu); }
  std::string bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void rewrite(const std::string& content) const { std::ofstream(path, std::ios::binary) << content; }

  // How both interfaces refuse the file; the same way.
  aglow_status refusal() const {
    auto* model = reinterpret_cast<aglow_model*>(1);
    const aglow_status status = aglow_load(path.c_str(), nullptr, &model);
    if (status == AGLOW_OK) {
      aglow_free(model);
      return status;
    }
    EXPECT_EQ(model, nullptr);
    const std::string text = aglow_error_text();
    EXPECT_THAT(text, HasSubstr(path));
    try {
      const aglow::Model again(path);
      ADD_FAILURE() << "it was opened";
    } catch (const aglow::Error& error) {
      EXPECT_EQ(error.status(), status);
      EXPECT_EQ(error.what(), text);
    }
    return status;
  }

  fs::path folder;
  std::string path;
};

TEST_F(ApiPackages, RunFromC) {
  write();
  aglow_model* model = nullptr;
  ASSERT_EQ(aglow_load(path.c_str(), nullptr, &model), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_num_functions(model), 2U);
  EXPECT_STREQ(aglow_function_name(model, 0), "add");
  ASSERT_EQ(aglow_select(model, "add"), AGLOW_OK) << aglow_error_text();
  ASSERT_EQ(aglow_num_inputs(model), 1U);
  EXPECT_STREQ(aglow_input(model, 0)->name, "step");
  EXPECT_EQ(aglow_input(model, 0)->kind, AGLOW_FLOAT32);
  EXPECT_EQ(aglow_find_output(model, "total"), 0);
  const float step[] = {10, 20};
  float total[2] = {};
  ASSERT_EQ(aglow_bind_input(model, 0, step, sizeof step), AGLOW_OK);
  ASSERT_EQ(aglow_bind_output(model, 0, total, sizeof total), AGLOW_OK);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aglow_run(model), AGLOW_OK) << aglow_error_text();
  EXPECT_THAT(total, ElementsAre(21, 42));
  EXPECT_STRNE(aglow_info(model)->target, "");
  aglow_free(model);
}

TEST_F(ApiPackages, RunFromCpp) {
  write();
  aglow::Model model(path, aglow::Options().threads(2));
  const std::vector<float> step = {1, 2};
  std::vector<float> total(2);
  aglow::Request add = model.function("add").request();
  add.bindInput(0, step.data(), step.size());
  add.bindOutput(0, total.data(), total.size());
  add.run();
  EXPECT_THAT(total, ElementsAre(2, 4));
  EXPECT_THAT(model.state<float>("count"), ElementsAre(2, 4));
}

// The interpreter computes the programs of a package, and says so.
TEST_F(ApiPackages, TakeTheInterpreter) {
  write();
  aglow::Model model(path, aglow::Options().backend("interpreter"));
  model.function("reset").run();
  EXPECT_THAT(model.state<float>("count"), ElementsAre(0, 0));
}

TEST_F(ApiPackages, ThatNeedTooMuchMemoryAreRefused) {
  write();
  aglow_options* options = aglow_options_new();
  ASSERT_EQ(aglow_options_set_memory_limit(options, 8), AGLOW_OK);
  aglow_model* model = nullptr;
  EXPECT_EQ(aglow_load(path.c_str(), options, &model), AGLOW_OUT_OF_RESOURCES);
  EXPECT_EQ(model, nullptr);
  aglow_options_free(options);
}

TEST_F(ApiPackages, ThatAreNotThereAreRefused) {
  EXPECT_EQ(refusal(), AGLOW_FILE);
  EXPECT_THAT(aglow_error_text(), HasSubstr("cannot open"));
  fs::create_directories(path);
  EXPECT_EQ(refusal(), AGLOW_FILE);
}

TEST_F(ApiPackages, ThatAreDamagedAreRefused) {
  write();
  const std::string whole = bytes();
  rewrite(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(refusal(), AGLOW_BAD_MODEL);
  EXPECT_THAT(aglow_error_text(), HasSubstr("E210"));
  for (const std::string_view word : {"target ", "declare", "aglowimg"}) {
    std::string changed = whole;
    changed[changed.find(word) + 2] ^= 1;
    rewrite(changed);
    EXPECT_EQ(refusal(), AGLOW_BAD_MODEL) << word;
  }
  rewrite("");
  EXPECT_EQ(refusal(), AGLOW_BAD_MODEL);
  rewrite(whole);
  EXPECT_EQ(refusal(), AGLOW_OK);
}

TEST_F(ApiPackages, OfAnotherBuildAreRefused) {
  constexpr size_t kHeader = 64, kSections = 12, kHash = 24, kVersion = 32, kRow = 32;
  write();
  std::string changed = bytes();
  uint32_t sections = 0;
  std::memcpy(&sections, changed.data() + kSections, sizeof sections);
  const std::string other = "0.0.0 0123456789abcdef";
  std::memset(changed.data() + kVersion, 0, kHeader - kVersion);
  std::memcpy(changed.data() + kVersion, other.data(), other.size());
  std::memset(changed.data() + kHash, 0, 8);
  const uint64_t hash =
      aglow::hashBytes(changed.data() + kHeader, sections * kRow, aglow::hashBytes(changed.data(), kHeader));
  std::memcpy(changed.data() + kHash, &hash, sizeof hash);
  rewrite(changed);
  EXPECT_EQ(refusal(), AGLOW_NOT_SUPPORTED);
  EXPECT_THAT(aglow_error_text(),
              AllOf(HasSubstr("E305"), HasSubstr(other), HasSubstr(testing_support::ownPackageVersion())));
}

TEST_F(ApiPackages, ForAnotherProcessorAreRefused) {
  write("sapphirerapids");
  if (testing_support::runsHere(path)) GTEST_SKIP() << "this processor has all of its instructions";
  EXPECT_EQ(refusal(), AGLOW_NOT_SUPPORTED);
  EXPECT_THAT(aglow_error_text(), AllOf(HasSubstr("E305"), HasSubstr("this processor lacks")));
}

}  // namespace
