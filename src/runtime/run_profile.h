// What takes the time: the instructions of a program, measured one by one.
#pragma once

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/device_observer.h"
#include "inst/cost.h"

namespace aglow {

class RunProfile : public DeviceObserver {
public:
  // Threads that took part in an instruction, and the mean of the times that they were busy, as a share of the longest:
  // 1 where all had as much to do.
  struct Sharing {
    int threads = 1;
    double balance = 1;
  };
  struct Line {
    std::string node, instruction, kernel;
    Cost cost;
    bool marker = false;
    int group = 0;                   // of instructions side by side or chained, numbered from 1; 0: it runs alone
    bool chained = false;            // the group is a chain
    std::vector<double> times = {};  // in seconds, of each run
    double seconds() const;          // the median
    Sharing sharing = {};            // in the last run
  };

  // Remembers names, kernels and costs of the program's instructions.
  explicit RunProfile(const Program& program);

  // Around each run; the first makes room for what the threads do, the second notes the times.
  void startRun(int threads);
  void finishRun();
  void begin(size_t instr) override;
  void end(size_t instr) override;
  void part(size_t instr, int thread, Time begin, Time end) override;
  void ran(size_t instr, Time begin, Time end) override;
  void copied(std::string_view what, int64_t bytes, Time begin, Time end) override;

  int runs() const { return runs_; }
  // Instructions by time, the slowest first; without markers.
  std::vector<const Line*> sorted() const;

protected:
  struct Event {
    size_t instr = 0;
    Time begin, end;
  };
  struct Copy {
    std::string what;
    int64_t bytes = 0;
    Time begin, end;
  };

  std::vector<Line> lines_;  // by instruction
  int runs_ = 0;
  // Of the last run: instructions, and the parts of those that were shared, by thread.
  std::vector<Event> events_;
  std::vector<std::vector<Event>> parts_;
  std::vector<Copy> copies_;
  Time start_;

private:
  using Clock = std::chrono::steady_clock;
  using BusyTimes = std::unordered_map<size_t, std::vector<double>>;  // by instruction, of each thread that did some
  BusyTimes busyTimes() const;
  void noteTimes(const BusyTimes& busy);
  void noteSharing(const BusyTimes& busy);
};

}  // namespace aglow
