// Which way to write its kernels a device is quickest with, by measurement: answers to what codegen::Ways is asked,
// kept between processes.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "backends/backend.h"
#include "backends/device/kept.h"
#include "codegen/clike/launch.h"
#include "inst/program.h"
#include "support/error.h"

namespace aglow::device {

class Tuner final : public codegen::Ways {
public:
  // The seconds that a program of one instruction takes with kernels that are written in these ways.
  using Measure = std::function<Result<double>(Program program, const codegen::Ways& ways)>;

  // Answers are kept in the folder for the device with this identity.
  Tuner(const codegen::DeviceShape& shape, std::string folder, std::string identity, Measure measure)
      : shape_(shape), folder_(std::move(folder)), identity_(std::move(identity)), measure_(std::move(measure)) {}

  // Measures all ways of the instruction's kernels, unless it is known which is the quickest.
  Status tune(const Program& program, const Instr& instr);
  // The quickest; the first where nothing was measured.
  size_t choose(const std::string& question, std::span<const std::string> ways) const override;

private:
  Kept keptOf(const std::string& question) const;

  codegen::DeviceShape shape_;
  std::string folder_, identity_;
  Measure measure_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> quickest_;  // by question
};

// The seconds of the program's kernels by the device's clock, in the shortest of a few runs.
Result<double> secondsOf(Program program, const Backend& backend);

}  // namespace aglow::device
