#include "support/turnstile.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "in_child.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;

void waitUntil(const auto& holds) {
  while (!holds()) std::this_thread::yield();
}

TEST(Turnstile, EachPlaceHasOneAtATime) {
  constexpr size_t kPlaces = 3;
  Turnstile turnstile(kPlaces);
  int inside[kPlaces] = {};  // plain: whoever has the place is alone with it
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const size_t place = turnstile.enter().value();
        ++inside[place];
        if (i % 10 == 0) std::this_thread::yield();
        turnstile.leave(place);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inside[0] + inside[1] + inside[2], 8 * 500);
  EXPECT_EQ(turnstile.waiting(), 0u);
}

TEST(Turnstile, ThoseWhoWaitComeInOrderOfArrival) {
  Turnstile turnstile(1);
  EXPECT_EQ(turnstile.enter(), 0u);
  std::vector<size_t> order;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      const size_t place = turnstile.enter().value();
      order.push_back(t);
      turnstile.leave(place);
    });
    waitUntil([&] { return turnstile.waiting() == t + 1; });
  }
  turnstile.leave(0);
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

// A thread that comes back at once finds the place free, but not for long.
TEST(Turnstile, NobodyIsOvertakenForLong) {
  Turnstile turnstile(1);
  std::atomic<bool> done = false;
  std::vector<std::thread> greedy;
  for (int t = 0; t < 3; ++t)
    greedy.emplace_back([&] {
      while (!done) turnstile.leave(turnstile.enter().value());
    });
  for (int i = 0; i < 20; ++i) turnstile.leave(turnstile.enter().value());
  done = true;
  for (std::thread& thread : greedy) thread.join();
  EXPECT_EQ(turnstile.waiting(), 0u);
  EXPECT_EQ(turnstile.enter(0), 0u);
}

TEST(Turnstile, NoMoreWaitThanMay) {
  Turnstile turnstile(2);
  const size_t one = turnstile.enter(0).value(), other = turnstile.enter(0).value();
  EXPECT_NE(one, other);
  EXPECT_EQ(turnstile.enter(0), std::nullopt);
  std::thread waiting([&] { turnstile.leave(turnstile.enter(1).value()); });
  waitUntil([&] { return turnstile.waiting() == 1; });
  EXPECT_EQ(turnstile.enter(1), std::nullopt);
  turnstile.leave(one);
  waiting.join();
  EXPECT_EQ(turnstile.enter(0), one);
  EXPECT_EQ(turnstile.enter(0), std::nullopt);
}

TEST(Turnstile, AThreadGetsThePlaceThatItHadLast) {
  Turnstile turnstile(4);
  const size_t first = turnstile.enter().value(), second = turnstile.enter().value();
  turnstile.leave(first);
  turnstile.leave(second);
  EXPECT_EQ(turnstile.enter(), second);
}

TEST(Turnstile, AForkedChildFindsAllPlacesFree) {
  Turnstile turnstile(2);
  const size_t one = turnstile.enter().value(), other = turnstile.enter().value();
  std::thread waiting([&] { turnstile.leave(turnstile.enter().value()); });
  waitUntil([&] { return turnstile.waiting() == 1; });
  EXPECT_TRUE(testing_support::inChild(
      [&] { return turnstile.enter(0) && turnstile.enter(0) && !turnstile.enter(0) && turnstile.waiting() == 0; }));
  turnstile.leave(one);
  turnstile.leave(other);
  waiting.join();
}

TEST(SharedTurns, WritersAreAloneAndReadersSeeAWholeChange) {
  SharedTurns turns;
  int a = 0, b = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(turns.enterWriting());
        ++a;
        ++b;
        turns.leaveWriting();
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        ASSERT_TRUE(turns.enterReading());
        EXPECT_EQ(a, b);
        turns.leaveReading();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a, 1000);
}

TEST(SharedTurns, ReadersShareAndAForkedChildWritesAtOnce) {
  SharedTurns turns;
  ASSERT_TRUE(turns.enterReading(0));
  ASSERT_TRUE(turns.enterReading(0));
  EXPECT_TRUE(testing_support::inChild([&] {
    const bool writes = turns.enterWriting(0) && !turns.enterReading(0);
    turns.leaveWriting();
    return writes && turns.enterReading(0);
  }));
  turns.leaveReading();
  turns.leaveReading();
  ASSERT_TRUE(turns.enterWriting(0));
  EXPECT_FALSE(turns.enterReading(0));
  EXPECT_FALSE(turns.enterWriting(0));
  turns.leaveWriting();
}

}  // namespace
}  // namespace aglow
