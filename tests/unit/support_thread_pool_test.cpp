#include "support/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace aglow {

namespace {

// What the body gives in a forked process; -1 where it does not come to an end.
template <class Body>
int inChild(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The sum of the numbers below 9, by the pool, and how many threads took part.
std::pair<int, int> sumBy(ThreadPool& pool) {
  std::atomic<int> sum = 0, parts = 0;
  pool.run(9, [&](int, int64_t begin, int64_t end) {
    ++parts;
    for (int64_t i = begin; i < end; ++i) sum += static_cast<int>(i);
    return 0;
  });
  return {sum, parts};
}

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

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(3);
  EXPECT_EQ(sumBy(pool), std::pair(36, 3));
  const int inner = inChild([&] {
    const auto first = sumBy(pool), second = sumBy(pool);
    const int grandchild = inChild([&] { return sumBy(pool) == std::pair(36, 3) ? 7 : 0; });
    return first == std::pair(36, 3) && second == first && grandchild == 7 ? 5 : 0;
  });
  EXPECT_EQ(inner, 5);
  EXPECT_EQ(sumBy(pool), std::pair(36, 3));
}

TEST(ThreadPool, GoesInAForkedChild) {
  auto pool = std::make_unique<ThreadPool>(3);
  sumBy(*pool);
  EXPECT_EQ(inChild([&] {
              pool.reset();
              return 5;
            }),
            5);
}

// The child finds the pool taken by a thread that it does not have.
TEST(ThreadPool, WorksInAChildThatIsForkedDuringACall) {
  ThreadPool pool(2);
  std::atomic<bool> begun = false, finish = false;
  std::thread other([&] {
    pool.run(2, [&](int, int64_t, int64_t) {
      begun = true;
      while (!finish) std::this_thread::yield();
      return 0;
    });
  });
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(inChild([&] { return sumBy(pool) == std::pair(36, 2) ? 5 : 0; }), 5);
  EXPECT_EQ(sumBy(pool), std::pair(36, 1)) << "here the other call is still going on";
  finish = true;
  other.join();
}

TEST(ThreadPool, MakesDoWithFewerThreads) {
  // As a user who has nothing else running, because the limit counts all of a user, and does not hold for root.
  EXPECT_EQ(inChild([] {
              const rlimit tight{8, 8};
              if (::setrlimit(RLIMIT_NPROC, &tight) != 0 || (::geteuid() == 0 && ::setuid(54321) != 0)) return 1;
              ThreadPool pool(kMaxThreads);
              return pool.threads() <= 8 && sumBy(pool) == std::pair(36, pool.threads()) ? 5 : 0;
            }),
            5);
}

TEST(ThreadPool, HasALimit) {
  EXPECT_TRUE(checkThreads(0).ok());
  EXPECT_TRUE(checkThreads(kMaxThreads).ok());
  EXPECT_EQ(checkThreads(kMaxThreads + 1).error().code, Code::Usage);
  EXPECT_EQ(checkThreads(-1).error().code, Code::Usage);
}

TEST(ForkMutex, IsFreeInAChild) {
  ForkMutex mutex;
  std::atomic<bool> held = false, release = false;
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    held = true;
    while (!release) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_EQ(inChild([&] {
              mutex.lock();
              const bool again = mutex.try_lock();
              mutex.unlock();
              return !again && mutex.try_lock() ? 5 : 0;
            }),
            5);
  release = true;
  mutex.lock();
  mutex.unlock();
  other.join();
}

TEST(ForkMutex, ExcludesOthers) {
  ForkMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10'000; ++round) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40'000);
}

TEST(WholeMutex, GuardsWhatIsWholeInAChild) {
  WholeMutex outer, inner;
  int first = 0, second = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      while (!done) {
        const std::lock_guard lock(outer);
        ++first;
        const std::lock_guard nested(inner);
        ++second;
      }
    });
  for (int round = 0; round < 300; ++round)
    ASSERT_EQ(inChild([&] {
                const std::lock_guard lock(outer);
                const std::lock_guard nested(inner);
                return first == second ? 5 : 0;
              }),
              5);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace aglow
