// The rate of each step: schedules by name. The rate is an input of every step, so a schedule is nothing but numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace aglow {

struct ScheduleRow {
  std::string_view name;
  std::string_view doc;
};
std::vector<ScheduleRow> schedules();

// "constant", "linear", "cosine", "exponential=0.9", "step=30:0.1"; any of them with ",warmup=100" after it.
class RateSchedule {
public:
  static Result<RateSchedule> parse(const std::string& text);

  // The factor for the step, of so many; epochs have `perEpoch` steps.
  double factor(int64_t step, int64_t steps, int64_t perEpoch) const;

private:
  enum class Kind : uint8_t { Constant, Linear, Cosine, Exponential, Step };
  Kind kind_ = Kind::Constant;
  double factor_ = 1;   // of an epoch, or of as many as `every_` says
  int64_t every_ = 1;   // epochs
  int64_t warmup_ = 0;  // steps in which the rate grows from nearly 0
};

}  // namespace aglow
