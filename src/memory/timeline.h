// The simulated clock of a device with two engines: one computes, the other copies from and to the host meanwhile.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "inst/banks.h"
#include "memory/latency_model.h"

namespace aglow {

// What the engines do, in seconds from the beginning.
struct Timeline {
  enum class Engine : uint8_t { Compute, Copy };
  struct Row {
    size_t instr = 0;  // of a copy: its start
    Engine engine = Engine::Compute;
    double begin = 0, end = 0;
    double exposed = 0;  // of a copy: how long the other engine stood still for it
  };

  std::vector<Row> rows;      // in the order in which they begin on their engine
  double seconds = 0;         // until all is done
  double copySeconds = 0;     // of all copies together
  double exposedSeconds = 0;  // of them, while nothing was computed because of them

  // The share of the copies' time that costs nothing; 1 where nothing is copied.
  double hidden() const { return copySeconds > 0 ? std::max(0.0, 1 - exposedSeconds / copySeconds) : 1; }
};

class DeviceClock {
public:
  // The program outlives the clock.
  DeviceClock(const Program& program, const LatencyModel& model) : program_(program), banks_(program), model_(model) {}

  // The instruction runs; or it is skipped, which takes no time.
  void run(size_t instr, bool skipped = false);
  const Timeline& timeline() const { return timeline_; }

private:
  const Program& program_;
  Banks banks_;
  LatencyModel model_;
  Timeline timeline_;
  double now_ = 0;                  // of the engine that computes
  double copiesDone_ = 0;           // when the other one has nothing more to do
  std::map<int64_t, size_t> rows_;  // by token: copies under way
};

// All instructions of a program, one after the other.
Timeline simulate(const Program& program, const LatencyModel& model);

}  // namespace aglow
