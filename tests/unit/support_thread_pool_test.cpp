#include "support/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/pace.h"

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

// How many threads do a part of the same work, each waiting for the others; a few tries, since a busy machine may keep
// some of them away.
size_t threadsIn(ThreadPool& pool) {
  const auto all = static_cast<size_t>(pool.threads());
  size_t most = 0;
  for (int attempt = 0; attempt < 20 && most < all; ++attempt) {
    std::mutex mutex;
    std::set<std::thread::id> there;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100 + 100 * attempt);
    pool.run({.units = pool.threads()}, [&](int, int64_t, int64_t) {
      for (size_t count = 0; count < all && std::chrono::steady_clock::now() < deadline; std::this_thread::yield()) {
        const std::lock_guard lock(mutex);
        there.insert(std::this_thread::get_id());
        count = there.size();
      }
      return 0;
    });
    most = std::max(most, there.size());
    if (most < all) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return most;
}

// The sum of the numbers below 9, by the pool.
int sumBy(ThreadPool& pool) {
  std::atomic<int> sum = 0;
  pool.run({.units = 9}, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += static_cast<int>(i);
    return 0;
  });
  return sum;
}

// Where chunks begin.
std::set<int64_t> bordersOf(int threads, const Spread& spread) {
  ThreadPool pool(threads);
  std::mutex mutex;
  std::set<int64_t> borders;
  pool.run(spread, [&](int, int64_t begin, int64_t) {
    const std::lock_guard lock(mutex);
    borders.insert(begin);
    return 0;
  });
  return borders;
}

// A caller of the pool on a thread of its own.
class OtherCaller {
public:
  explicit OtherCaller(ThreadPool& pool)
      : thread_([this, &pool] {
          const ThreadPool::Caller caller(pool);
          there_.set_value();
          end_.get_future().wait();
        }) {
    there_.get_future().wait();
  }
  ~OtherCaller() {
    end_.set_value();
    thread_.join();
  }
  OtherCaller(const OtherCaller&) = delete;
  OtherCaller& operator=(const OtherCaller&) = delete;

private:
  std::promise<void> there_, end_;
  std::thread thread_;  // last: it uses the others
};

TEST(ThreadPool, DoesEveryUnitOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t units : {1, 2, 5, 100, 1000})
      for (const int worth : {1, 2, 5, kMaxThreads}) {
        std::vector<std::atomic<int>> done(static_cast<size_t>(units));
        EXPECT_EQ(pool.run({.units = units, .threads = worth},
                           [&](int thread, int64_t begin, int64_t end) {
                             EXPECT_LT(thread, threads);
                             EXPECT_LT(begin, end);
                             for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
                             return 0;
                           }),
                  0);
        for (const auto& count : done) EXPECT_EQ(count, 1);
      }
  }
}

TEST(ThreadPool, CutsWorkByWhatItIs) {
  for (const int64_t units : {2, 5, 100, 1000})
    for (const int worth : {2, 3, 16}) {
      const Spread spread{.units = units, .threads = worth};
      const std::set<int64_t> borders = bordersOf(2, spread);
      EXPECT_EQ(static_cast<int64_t>(borders.size()), std::min<int64_t>(units, 4 * worth));
      EXPECT_EQ(borders, bordersOf(7, spread));
    }
}

TEST(ThreadPool, UsesNoMoreThreadsThanAreWanted) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    pool.run({.units = 100, .threads = 3, .most = 2}, [&](int, int64_t, int64_t) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      return 0;
    });
    EXPECT_LE(threads.size(), 2U);
  }
}

TEST(ThreadPool, CallersShareTheThreads) {
  ThreadPool pool(4);
  const auto chunksAtOnce = [&] {
    std::set<int> threads;
    std::mutex mutex;
    for (int round = 0; round < 200; ++round)
      pool.run({.units = 100}, [&](int thread, int64_t, int64_t) {
        const std::lock_guard lock(mutex);
        threads.insert(thread);
        return 0;
      });
    return threads.empty() ? 0 : *threads.rbegin() + 1;
  };
  const ThreadPool::Caller one(pool);
  const ThreadPool::Caller again(pool);  // of the same thread: counts once
  EXPECT_EQ(threadsIn(pool), 4U);
  {
    const OtherCaller two(pool);
    EXPECT_LE(chunksAtOnce(), 2);
    const OtherCaller three(pool);
    EXPECT_EQ(chunksAtOnce(), 1);
  }
  EXPECT_EQ(threadsIn(pool), 4U);
}

TEST(ThreadPool, AllThreadsTakePart) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(threadsIn(pool), static_cast<size_t>(threads));
  }
}

TEST(ThreadPool, GivesTheWorstOfWhatThePartsGive) {
  ThreadPool pool(4);
  const auto part = [](int, int64_t begin, int64_t end) { return begin <= 5 && 5 < end ? 7 : 0; };
  EXPECT_EQ(pool.run({.units = 8}, part), 7);
  EXPECT_EQ(pool.run({.units = 4}, part), 0);  // the fault before is forgotten
}

// Rounds that follow each other at once, and rounds for which the threads were asleep already.
TEST(ThreadPool, WakesUpForEveryRound) {
  ThreadPool pool(3);
  for (int round = 0; round < 2000; ++round) EXPECT_EQ(sumBy(pool), 36);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(threadsIn(pool), 3U);
  }
}

TEST(ThreadPool, DoesNothingForNoUnits) {
  ThreadPool pool(2);
  EXPECT_EQ(pool.run({.units = 0}, [](int, int64_t, int64_t) { return 1; }), 0);
}

TEST(ThreadPool, ServesSeveralCallers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 5; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) wrong += sumBy(pool) != 36;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// One caller's slow work keeps no other from being done.
TEST(ThreadPool, WaitsForNobodyElsesWork) {
  ThreadPool pool(2);
  std::atomic<int> begun = 0;
  std::atomic<bool> finish = false;
  std::thread other([&] {
    pool.run({.units = 2}, [&](int, int64_t, int64_t) {
      ++begun;
      while (!finish) std::this_thread::yield();
      return 0;
    });
  });
  while (begun == 0) std::this_thread::yield();
  for (int round = 0; round < 100; ++round) EXPECT_EQ(sumBy(pool), 36);
  // The child finds work that only threads of its parent could finish.
  EXPECT_EQ(inChild([&] { return sumBy(pool) == 36 && threadsIn(pool) == 2 ? 5 : 0; }), 5);
  finish = true;
  other.join();
}

TEST(ThreadPool, RestsWhereNothingIsToDo) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) sumBy(pool);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto used = [] {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double before = used();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(used() - before, 0.002);
}

TEST(ThreadPool, IsOneForTheProcess) {
  const auto small = ThreadPool::ofProcess(2);
  const int had = small->threads();
  EXPECT_GE(had, 2);
  const auto large = ThreadPool::ofProcess(had + 1);
  EXPECT_EQ(small, large);
  EXPECT_EQ(small->threads(), had + 1);
  EXPECT_EQ(sumBy(*small), 36);
}

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(3);
  EXPECT_EQ(threadsIn(pool), 3U);
  const int inner = inChild([&] {
    const bool works = threadsIn(pool) == 3 && sumBy(pool) == 36;
    const int grandchild = inChild([&] { return threadsIn(pool) == 3 ? 7 : 0; });
    return works && grandchild == 7 ? 5 : 0;
  });
  EXPECT_EQ(inner, 5);
  EXPECT_EQ(threadsIn(pool), 3U);
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

constexpr int64_t kMillisecond = 1'000'000;

// Sharing that took twice as long as half of the threads would have, at most `times` times.
int64_t lose(Pace& pace, int64_t now, int times) {
  for (int i = 0; i < times; ++i) pace.report(kMillisecond, 4 * kMillisecond, now += 5 * kMillisecond);
  return now;
}

TEST(Pace, UsesFewerThreadsWhereOthersAreLate) {
  Pace pace;
  int64_t now = 0;
  EXPECT_EQ(pace.limit(16, now), 16);
  for (int i = 0; i < 100; ++i) pace.report(kMillisecond, kMillisecond / 2, now += kMillisecond);
  EXPECT_EQ(pace.limit(16, now), 16);
  // Short waits are what waking takes, and one long one is an accident.
  for (int i = 0; i < 1000; ++i) pace.report(5'000, 20'000, now += 25'000);
  EXPECT_EQ(pace.limit(16, now = lose(pace, now, 1)), 16);
  pace.report(4 * kMillisecond, 0, now += 4 * kMillisecond);
  EXPECT_EQ(pace.limit(16, now = lose(pace, now, 1)), 16);
  EXPECT_EQ(pace.limit(16, now = lose(pace, now, 1)), 8);
  EXPECT_EQ(pace.limit(16, now = lose(pace, now, 2)), 4);
  EXPECT_EQ(pace.limit(2, now), 1);
}

TEST(Pace, TriesMoreThreadsAgain) {
  Pace pace;
  int64_t now = lose(pace, 0, 4);
  EXPECT_EQ(pace.limit(16, now), 4);
  // What goes well is followed by more soon.
  EXPECT_EQ(pace.limit(16, now += 21 * kMillisecond), 8);
  pace.report(4 * kMillisecond, 0, now);
  EXPECT_EQ(pace.limit(16, now += 21 * kMillisecond), 16);
  // What does not ends at once, and the next try comes later and later.
  for (const int hold : {40, 80, 160, 320, 640, 640}) {
    now = lose(pace, now, 1);
    EXPECT_EQ(pace.limit(16, now), 8);
    EXPECT_EQ(pace.limit(16, now + (hold - 1) * kMillisecond), 8);
    EXPECT_EQ(pace.limit(16, now += (hold + 1) * kMillisecond), 16);
  }
}

TEST(ThreadPool, MakesDoWithFewerThreads) {
  // As a user who has nothing else running, because the limit counts all of a user, and does not hold for root.
  EXPECT_EQ(inChild([] {
              const rlimit tight{8, 8};
              if (::setrlimit(RLIMIT_NPROC, &tight) != 0 || (::geteuid() == 0 && ::setuid(54321) != 0)) return 1;
              ThreadPool pool(kMaxThreads);
              return pool.threads() <= 8 && sumBy(pool) == 36 ? 5 : 0;
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
  for (int round = 0; round < 100; ++round)
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
