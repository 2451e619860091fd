// Which way to write its kernels a device is quickest with, by measurement: answers to what codegen::Ways is asked,
// kept between processes.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "backends/backend.h"
#include "backends/device/kept.h"
#include "backends/device/tune_options.h"
#include "codegen/clike/launch.h"
#include "inst/program.h"
#include "support/error.h"

namespace aglow::device {

class Tuner final : public codegen::Ways {
public:
  // The seconds that a program of one instruction takes with kernels that are written in these ways.
  using Measure = std::function<Result<double>(Program program, const codegen::Ways& ways)>;

  // Answers are kept in the folder for the device with this identity.
  Tuner(const codegen::DeviceShape& shape, std::string folder, std::string identity, TuneOptions options,
        Measure measure)
      : shape_(shape),
        folder_(std::move(folder)),
        identity_(std::move(identity)),
        options_(std::move(options)),
        measure_(std::move(measure)) {}

  // Measures the ways of the instruction's kernels, unless it is known which is the quickest: those first that are
  // quickest by the model, until several gain nothing. What time does not suffice for is not kept.
  Status tune(const Program& program, const Instr& instr);
  // The quickest; the first where nothing was measured.
  size_t choose(const std::string& question, std::span<const std::string> ways) const override;

private:
  Kept keptOf(const std::string& question) const;
  Status measure(const Program& program, const std::string& question, std::span<const std::string> ways);

  codegen::DeviceShape shape_;
  std::string folder_, identity_;
  TuneOptions options_;
  Measure measure_;
  double spent_ = 0;  // seconds
  mutable std::mutex mutex_;
  std::map<std::string, std::string> quickest_;  // by question
};

// The seconds of the program's kernels by the device's clock, in the shortest of a few runs.
Result<double> secondsOf(Program program, const Backend& backend);

}  // namespace aglow::device
