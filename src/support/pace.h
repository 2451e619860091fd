// How many threads to share work over, from what sharing it has brought lately. On a machine with busy neighbours a
// thread may lose its processor in the middle of a chunk, and everybody waits for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace aglow {

// Times are nanoseconds of one clock. Safe from several threads; what they report at the same time may count once.
class Pace {
public:
  // At most this many threads now, out of `most`.
  int limit(int most, int64_t now);
  // Work was shared: the caller was busy with its own chunks, then waited for those of others, until now. Half as many
  // threads would have taken it about twice its busy time, so waiting for longer than that is a loss.
  void report(int64_t busy, int64_t waited, int64_t now);

private:
  static constexpr int64_t kShortWait = 30'000;      // a thread that wakes up or finds its data elsewhere
  static constexpr int64_t kWindow = 2'000'000;      // of busy and waiting time, after which it is judged
  static constexpr int kStrikes = 2;                 // losses in a row that are more than a first run or an accident
  static constexpr int64_t kFirstHold = 20'000'000;  // how long fewer threads are used
  static constexpr int64_t kLongestHold = 640'000'000;

  std::atomic<int> halvings_ = 0;
  std::atomic<int> strikes_ = 0;
  std::atomic<bool> trying_ = false;  // twice as many since a moment ago
  std::atomic<int64_t> until_ = 0;    // when twice as many are tried
  std::atomic<int64_t> hold_ = kFirstHold;
  std::atomic<int64_t> busy_ = 0, waited_ = 0;  // in this window
};

}  // namespace aglow
