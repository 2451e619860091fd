#include "support/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace aglow {

namespace {

class CpuQuota : public testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  double of(const std::string& groups) { return cpuQuota(groups, root_); }

private:
  std::filesystem::path root_ =
      testing::TempDir() + "/aglow_cpu_quota_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CpuQuota, IsNoneWithoutFiles) {
  EXPECT_EQ(of(""), 0);
  EXPECT_EQ(of("0::/service\n"), 0);
  EXPECT_EQ(of("nonsense\n1:cpu\n::\n"), 0);
}

TEST_F(CpuQuota, IsTheLeastOfAllGroupsAbove) {
  write("cpu.max", "max 100000\n");
  write("pods/cpu.max", "150000 100000\n");
  write("pods/one/cpu.max", "400000 100000\n");
  EXPECT_EQ(of("0::/\n"), 0);
  EXPECT_EQ(of("0::/pods/one\n"), 1.5);
  // Inside of a container the path is that of the host, and the files are those of the group itself.
  write("cpu.max", "50000 100000\n");
  EXPECT_EQ(of("0::/kubepods/elsewhere\n"), 0.5);
  write("cpu.max", "what is this");
  EXPECT_EQ(of("0::/\n"), 0);
}

TEST_F(CpuQuota, ReadsTheFirstVersion) {
  write("cpu/app/cpu.cfs_quota_us", "-1\n");
  write("cpu/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(of("4:memory:/app\n3:cpu,cpuacct:/app\n"), 0);
  write("cpu/app/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(of("4:memory:/app\n3:cpu,cpuacct:/app\n"), 3);
  EXPECT_EQ(of("3:cpuacct:/app\n"), 0);
  write("cpu,cpuacct/app/cpu.cfs_quota_us", "200000\n");
  write("cpu,cpuacct/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(of("3:cpu,cpuacct:/app\n"), 2);
}

}  // namespace

}  // namespace aglow
