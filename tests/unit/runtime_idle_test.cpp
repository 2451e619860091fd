// Threads look for work for a short while only: soon after the last run nobody uses a processor.
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "support/thread_pool.h"

namespace aglow {
namespace {

using namespace std::chrono_literals;

// Nanoseconds on a processor of every thread of this process but the caller; empty where the system does not say.
std::map<std::string, int64_t> timesOfOthers() {
  std::map<std::string, int64_t> times;
  const std::string own = std::to_string(::syscall(SYS_gettid));
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    int64_t time = -1;
    std::ifstream(task.path() / "schedstat") >> time;
    if (time >= 0 && task.path().filename() != own) times[task.path().filename()] = time;
  }
  return times;
}

void shareSomething(ThreadPool& pool) {
  for (int run = 0; run < 50; ++run)
    pool.run({.units = 64, .threads = 4}, [](int, int64_t begin, int64_t end) {
      volatile double sum = 0;
      for (int64_t i = begin * 1000; i < end * 1000; ++i) sum = sum + static_cast<double>(i);
      return 0;
    });
}

TEST(Idle, NobodyUsesAProcessorSoonAfterTheLastRun) {
  ThreadPool pool(4);
  // On a machine with more to do than processors a thread may get to its end of looking late, so there are some tries:
  // one who never stops looking fails all of them.
  std::string busy = "none";
  for (int attempt = 0; attempt < 10 && !busy.empty(); ++attempt) {
    shareSomething(pool);
    std::this_thread::sleep_for(100ms);
    const auto before = timesOfOthers();
    if (before.empty()) GTEST_SKIP() << "the system does not say how long threads run";
    ASSERT_GE(before.size(), 3u);
    std::this_thread::sleep_for(50ms);
    busy.clear();
    for (const auto& [thread, time] : timesOfOthers())
      if (const auto it = before.find(thread); it != before.end() && time != it->second)
        busy += thread + " " + std::to_string(time - it->second) + " ns; ";
  }
  EXPECT_EQ(busy, "");
}

}  // namespace
}  // namespace aglow
