// What takes the time: the instructions of a program, measured one by one, as a table and as a trace.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "inst/cost.h"
#include "support/machine.h"

namespace aglow::cli {

class Profile final : public RunObserver {
public:
  // Remembers names, kernels and costs of the program's instructions.
  explicit Profile(const Program& program);

  // Around each run; the first makes room for what the threads tell, the second notes the times.
  void startRun(int threads);
  void finishRun();
  void begin(size_t instr, int thread) override;
  void end(size_t instr, int thread) override;

  // Instructions by time, the slowest first; shares are of all instructions together.
  std::string table(const MachinePeak& peak) const;
  nlohmann::json json(const MachinePeak& peak) const;
  // The last run in the trace event format of Chrome and Perfetto.
  std::string trace() const;

private:
  using Clock = std::chrono::steady_clock;
  struct Line {
    std::string node, instruction, kernel;
    Cost cost;
    bool marker = false;
    std::vector<double> times = {};  // in seconds, of each run
    double seconds() const;          // the median
  };
  struct Event {
    size_t instr = 0;
    Clock::time_point begin, end;
  };

  std::vector<const Line*> sorted() const;

  std::vector<Line> lines_;  // by instruction
  int runs_ = 0;
  std::vector<std::vector<Event>> events_;  // by thread, of the last run
  Clock::time_point start_;
};

}  // namespace aglow::cli
