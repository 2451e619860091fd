// How kernels that can be written in several ways are chosen for a device.
#pragma once

#include <functional>
#include <string>

namespace aglow::device {

struct TuneOptions {
  static constexpr double kSeconds = 60;  // where nobody says how long

  double seconds = 0;  // that may be spent on measuring; 0: the model of the device decides
  std::function<void(const std::string&)> tell = {};  // called with each answer, in a line
};

}  // namespace aglow::device
