#include "support/thread_pool.h"

#include <gtest/gtest.h>

namespace aglow {

namespace {

TEST(ThreadPool, DealsOutEveryUnitOnceInFixedParts) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t units : {1, 2, 5, 100}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(units));
      std::vector<std::atomic<int64_t>> sizes(static_cast<size_t>(threads));
      EXPECT_EQ(pool.run(units,
                         [&](int thread, int64_t begin, int64_t end) {
                           sizes[static_cast<size_t>(thread)] += end - begin;
                           for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
                           return 0;
                         }),
                0);
      for (const auto& count : done) EXPECT_EQ(count, 1);
      for (const auto& size : sizes) EXPECT_LE(size, units / std::min<int64_t>(units, threads) + 1);
    }
  }
}

TEST(ThreadPool, GivesTheWorstOfWhatThePartsGive) {
  ThreadPool pool(4);
  const auto part = [](int, int64_t begin, int64_t end) { return begin <= 5 && 5 < end ? 7 : 0; };
  EXPECT_EQ(pool.run(8, part), 7);
  EXPECT_EQ(pool.run(4, part), 0);  // the fault before is forgotten
}

// Rounds that follow each other at once, and rounds for which the threads were asleep already.
TEST(ThreadPool, WakesUpForEveryRound) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum = 0;
  for (int round = 0; round < 200; ++round)
    pool.run(9, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
      return 0;
    });
  EXPECT_EQ(sum, 200 * 36);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pool.run(9, [&](int, int64_t begin, int64_t end) {
    sum -= end - begin;
    return 0;
  });
  EXPECT_EQ(sum, 200 * 36 - 9);
}

TEST(ThreadPool, DoesNothingForNoUnits) {
  ThreadPool pool(2);
  EXPECT_EQ(pool.run(0, [](int, int64_t, int64_t) { return 1; }), 0);
}

}  // namespace

}  // namespace aglow
