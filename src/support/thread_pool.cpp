#include "support/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/pace.h"

namespace aglow {

namespace {

constexpr size_t kCacheLine = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// How long a thread looks for work before it sleeps: steps of a model follow each other within microseconds, and waking
// up takes tens of them. AGLOW_SPIN gives other microseconds.
int64_t spinTime() {
  static const int64_t time = [] {
    constexpr int64_t kDefault = 200, kMost = 1'000'000;
    int64_t microseconds = kDefault;
    if (const char* text = std::getenv("AGLOW_SPIN")) {
      const auto [end, fault] = std::from_chars(text, text + std::strlen(text), microseconds);
      if (fault != std::errc() || *end != '\0' || microseconds < 0) microseconds = kDefault;
    }
    return std::min(microseconds, kMost) * 1000;
  }();
  return time;
}

// Work of one caller. Its chunks lie in as many lanes as threads should take part, each thread begins with a lane of
// its own, the same one in every step, and goes on to those of others. What a claimed chunk is may be read until it is
// done: the caller puts the next work here after that.
struct alignas(kCacheLine) Job {
  struct alignas(kCacheLine) Lane {
    std::atomic<int64_t> left = 0;  // chunks that nobody has claimed
  };

  ThreadPool::Chunk* chunk = nullptr;
  const void* context = nullptr;
  int64_t units = 0, chunks = 0;
  int lanes = 0;
  std::atomic<int> wanted = 0;  // lanes, for those who look whether there is something to do
  std::atomic<int32_t> worst = 0;
  std::unique_ptr<Lane[]> lane = nullptr;
  alignas(kCacheLine) std::atomic<int64_t> done = 0;

  // Does chunks until all are claimed, beginning with the thread's own lane; how many. Says so before the first.
  template <class Begin>
  int64_t work(int thread, const Begin& begin) {
    int64_t count = 0;
    const int many = wanted.load(std::memory_order_relaxed);
    for (int i = 0; i < many; ++i) {
      const int at = thread + i < many ? thread + i : thread + i - many;
      for (int64_t number = claim(at); number >= 0; number = claim(at)) {
        if (count++ == 0) begin();
        perform(thread, number);
      }
    }
    return count;
  }

private:
  // The number of a chunk, which is the caller's to do; negative where none is left in the lane.
  int64_t claim(int at) {
    std::atomic<int64_t>& left = lane[static_cast<size_t>(at)].left;
    int64_t before = left.load(std::memory_order_relaxed);
    do {
      if (before == 0) return -1;
    } while (!left.compare_exchange_weak(before, before - 1, std::memory_order_acquire, std::memory_order_relaxed));
    return chunks * (at + 1) / lanes - before;
  }

  void perform(int thread, int64_t number) {
    const int32_t status = (*chunk)(context, thread, units * number / chunks, units * (number + 1) / chunks);
    int32_t known = worst.load(std::memory_order_relaxed);
    while (status > known && !worst.compare_exchange_weak(known, status, std::memory_order_relaxed)) {
    }
  }
};

}  // namespace

// The threads besides the callers, and what they look for.
class ThreadPool::Crew {
public:
  Crew() = default;

  ~Crew() {
    stop_ = true;
    const int count = workers_.load();
    for (int i = 0; i < count; ++i) wake(*worker_[static_cast<size_t>(i)]);
    for (int i = 0; i < count; ++i) worker_[static_cast<size_t>(i)]->thread.join();
  }

  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int threads() const { return workers_.load(std::memory_order_acquire) + 1; }

  // By one thread at a time.
  void grow(int threads) {
    // Signals are for the threads of the program, not for these.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int id = this->threads(); id < std::min(threads, kMaxThreads); ++id) {
        auto made = std::make_unique<Worker>();
        made->thread = std::thread([this, id, worker = made.get()] { serve(id, *worker); });
        worker_[static_cast<size_t>(id - 1)] = std::move(made);
        workers_.store(id, std::memory_order_release);
      }
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
      // Those that there are have to do.
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  int32_t run(const Spread& spread, Chunk* chunk, const void* context) {
    const int64_t start = nanoseconds();
    const int64_t chunks = std::min(int64_t{kChunksPerThread} * spread.threads, spread.units);
    const int most = static_cast<int>(std::min<int64_t>(chunks, std::min({spread.threads, spread.most, threads()})));
    const int lanes = pace_.limit(most, start);
    const int slot = lanes > 1 ? take() : -1;
    if (slot < 0) return chunk(context, 0, 0, spread.units);
    Job& job = job_[static_cast<size_t>(slot)];
    job.chunk = chunk;
    job.context = context;
    job.units = spread.units;
    job.chunks = chunks;
    job.lanes = lanes;
    publish(job, slot);
    wakeSome(slot, lanes);
    const int64_t mine = job.work(0, [] {});
    open_.fetch_and(~(uint64_t{1} << slot), std::memory_order_relaxed);
    const int64_t busy = nanoseconds();
    if (!isDone(job, chunks - mine)) waitFor(job, chunks - mine);
    const int64_t end = nanoseconds();
    const int32_t worst = job.worst.load(std::memory_order_relaxed);
    taken_.fetch_and(~(uint64_t{1} << slot), std::memory_order_release);
    pace_.report(busy - start, end - busy, end);
    return worst;
  }

private:
  static constexpr int kJobs = 64;  // callers at a time; more of them work alone
  // So that those who come late or are slow leave something to the others.
  static constexpr int kChunksPerThread = 4;

  struct alignas(kCacheLine) Worker {
    std::atomic<uint32_t> asleep = 0;
    std::thread thread;
  };

  // Which of the caller's threads a worker is for the job in a slot: different workers come first for different jobs.
  static int rank(int id, int slot, int workers) { return (id - 1 + slot) % workers + 1; }

  int take() {
    uint64_t taken = taken_.load(std::memory_order_relaxed);
    while (taken != ~uint64_t{0}) {
      const int slot = std::countr_one(taken);
      if (!taken_.compare_exchange_weak(taken, taken | uint64_t{1} << slot, std::memory_order_acquire)) continue;
      Job& job = job_[static_cast<size_t>(slot)];
      if (!job.lane) job.lane.reset(new (std::nothrow) Job::Lane[kMaxThreads]);
      if (job.lane) return slot;
      taken_.fetch_and(~(uint64_t{1} << slot), std::memory_order_release);
      return -1;
    }
    return -1;
  }

  void publish(Job& job, int slot) {
    job.worst.store(0, std::memory_order_relaxed);
    job.done.store(0, std::memory_order_relaxed);
    job.wanted.store(job.lanes, std::memory_order_relaxed);
    for (int i = 0; i < job.lanes; ++i)
      job.lane[static_cast<size_t>(i)].left.store(job.chunks * (i + 1) / job.lanes - job.chunks * i / job.lanes,
                                                  std::memory_order_release);
    open_.fetch_or(uint64_t{1} << slot);
  }

  static bool isDone(const Job& job, int64_t others) { return job.done.load(std::memory_order_acquire) == others; }

  static void waitFor(const Job& job, int64_t others) {
    constexpr int kSpins = 2'000;
    for (int spin = 0; !isDone(job, others); ++spin) {
      // With fewer processors than threads the others need this one to get anywhere.
      if (spin < kSpins)
        pause();
      else
        std::this_thread::yield();
    }
  }

  static void wake(Worker& worker) {
    if (worker.asleep.exchange(0) != 0) worker.asleep.notify_one();
  }

  // Those that sleep though a lane is for them; the others are looking. It takes time to wake one, so everybody who
  // begins wakes a few.
  void wakeSome(int slot, int lanes) {
    constexpr int kWakes = 3;
    if (asleep_.load() == 0) return;
    const int workers = threads() - 1;
    int woken = 0;
    for (int i = 0; i < std::min(lanes - 1, workers) && woken < kWakes; ++i) {
      Worker& worker = *worker_[static_cast<size_t>(((i - slot) % workers + workers) % workers)];
      if (worker.asleep.load() == 0) continue;
      wake(worker);
      ++woken;
    }
  }

  // Takes part in whatever is open; whether there was something.
  bool help(int id) {
    bool helped = false;
    for (uint64_t open = open_.load(); open != 0; open &= open - 1) {
      const int slot = std::countr_zero(open);
      Job& job = job_[static_cast<size_t>(slot)];
      // Counted after work was seen: a thread that has only just begun may not be counted before.
      const int lane = rank(id, slot, threads() - 1);
      const int wanted = job.wanted.load(std::memory_order_relaxed);
      if (lane >= wanted) continue;
      const int64_t count = job.work(lane, [&] { wakeSome(slot, wanted); });
      if (count == 0) continue;
      job.done.fetch_add(count, std::memory_order_release);
      helped = true;
    }
    return helped;
  }

  void serve(int id, Worker& worker) {
    // Whoever looked in vain looks for a shorter time, down to an eighth.
    int64_t spin = spinTime();
    while (!stop_) {
      const int64_t start = nanoseconds();
      bool helped = help(id);
      for (int i = 0; !helped && !stop_ && (i % 64 != 0 || nanoseconds() - start < spin); ++i) {
        pause();
        helped = help(id);
      }
      if (helped) {
        spin = std::min(2 * spin, spinTime());
        continue;
      }
      spin = std::max(spin / 2, spinTime() / 8);
      sleep(id, worker);
    }
  }

  void sleep(int id, Worker& worker) {
    asleep_.fetch_add(1);
    worker.asleep = 1;
    // Work that came before the word was written woke nobody.
    if (!stop_ && !help(id)) worker.asleep.wait(1);
    worker.asleep = 0;
    asleep_.fetch_sub(1);
  }

  std::array<Job, kJobs> job_;
  std::array<std::unique_ptr<Worker>, kMaxThreads> worker_;
  std::atomic<int> workers_ = 0;
  alignas(kCacheLine) std::atomic<uint64_t> open_ = 0;   // jobs with chunks to claim
  alignas(kCacheLine) std::atomic<uint64_t> taken_ = 0;  // jobs that belong to a caller
  alignas(kCacheLine) std::atomic<int> asleep_ = 0;
  std::atomic<bool> stop_ = false;
  Pace pace_;
};

Status checkThreads(int threads) {
  if (threads >= 0 && threads <= kMaxThreads) return {};
  return Error{.code = Code::Usage,
               .message = "threads are " + std::to_string(threads) + "; expected 1 to " + std::to_string(kMaxThreads) +
                          ", or 0 for one per processor"};
}

ThreadPool::ThreadPool(int threads) : crew_(new Crew), generation_(forkGeneration()) { grow(threads); }

ThreadPool::~ThreadPool() {
  // The parent's threads are not here, and nothing that they wait on can be taken down without them.
  if (generation_ == forkGeneration()) delete crew_.load();
}

std::shared_ptr<ThreadPool> ThreadPool::ofProcess(int threads) {
  // Never taken down: at the end of the process other statics may be gone while a thread still looks for work.
  static const auto* pool = new std::shared_ptr<ThreadPool>(std::make_shared<ThreadPool>(1));
  (*pool)->grow(threads);
  return *pool;
}

int ThreadPool::threads() const { return crew_.load(std::memory_order_acquire)->threads(); }

void ThreadPool::grow(int threads) {
  Crew& crew = this->crew();
  if (threads <= crew.threads()) return;
  const std::lock_guard lock(changing_);
  crew.grow(threads);
}

ThreadPool::Crew& ThreadPool::crew() {
  Crew* known = crew_.load(std::memory_order_acquire);
  if (generation_.load(std::memory_order_acquire) == forkGeneration()) return *known;
  const std::lock_guard lock(changing_);
  if (generation_.load(std::memory_order_acquire) != forkGeneration()) {
    // Half a job of the parent's may lie in the old one.
    const int threads = known->threads();
    known = new Crew;
    known->grow(threads);
    callers_.store(0, std::memory_order_relaxed);  // they are the parent's
    crew_.store(known, std::memory_order_release);
    generation_.store(forkGeneration(), std::memory_order_release);
  }
  return *crew_.load(std::memory_order_acquire);
}

static thread_local const ThreadPool* calledBefore = nullptr;

ThreadPool::Caller::Caller(ThreadPool& pool) : pool_(pool), outer_(std::exchange(calledBefore, &pool)) {
  pool_.crew();  // of a forked child: without the callers of its parent
  if (outer_ != &pool_) pool_.callers_.fetch_add(1, std::memory_order_relaxed);
}

ThreadPool::Caller::~Caller() {
  calledBefore = outer_;
  if (outer_ != &pool_) pool_.callers_.fetch_sub(1, std::memory_order_relaxed);
}

// Rounded down: a thread too few is idle for a while, one too many takes the processor from somebody for whom everybody
// then waits.
int ThreadPool::share(const Crew& crew) const {
  return std::max(crew.threads() / std::max(callers_.load(std::memory_order_relaxed), 1), 1);
}

int32_t ThreadPool::run(const Spread& spread, Chunk* chunk, const void* context) {
  if (spread.units == 0) return 0;
  if (spread.units == 1 || spread.threads <= 1 || spread.most <= 1) return chunk(context, 0, 0, spread.units);
  Crew& crew = this->crew();
  Spread shared = spread;
  shared.most = std::min(shared.most, share(crew));
  return crew.run(shared, chunk, context);
}

}  // namespace aglow
