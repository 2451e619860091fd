#include "train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "support/suggest.h"

namespace aglow {

namespace {

Error malformed(const std::string& text) {
  return {.code = Code::Usage,
          .message = fmt::format("'{}' is not a schedule", text),
          .where = {},
          .hint = "constant, linear, cosine, exponential=FACTOR, step=EPOCHS:FACTOR; with ,warmup=STEPS"};
}

bool readNumber(std::string_view text, auto& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<ScheduleRow> schedules() {
  return {{"constant", "the rate as it is"},
          {"linear", "down to 0 in a line"},
          {"cosine", "down to 0 along half a wave"},
          {"exponential=FACTOR", "times the factor after each epoch"},
          {"step=EPOCHS:FACTOR", "times the factor after so many epochs"}};
}

Result<RateSchedule> RateSchedule::parse(const std::string& text) {
  RateSchedule schedule;
  std::string_view rest = text;
  bool first = true;
  while (first || !rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string_view word = rest.substr(0, comma);
    rest = rest.substr(std::min(comma + 1, rest.size()));
    const size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    std::string_view value = word.substr(std::min(equals + 1, word.size()));
    if (!first) {
      if (name != "warmup" || !readNumber(value, schedule.warmup_) || schedule.warmup_ < 0) return malformed(text);
      continue;
    }
    first = false;
    if (name == "constant" || name == "linear" || name == "cosine") {
      if (!value.empty()) return malformed(text);
      schedule.kind_ = name == "constant" ? Kind::Constant : name == "linear" ? Kind::Linear : Kind::Cosine;
      continue;
    }
    if (name == "step") {
      const size_t colon = value.find(':');
      if (colon == std::string_view::npos || !readNumber(value.substr(0, colon), schedule.every_))
        return malformed(text);
      value = value.substr(colon + 1);
      schedule.kind_ = Kind::Step;
    } else if (name == "exponential") {
      schedule.kind_ = Kind::Exponential;
    } else {
      return malformed(text);
    }
    if (!readNumber(value, schedule.factor_) || !(schedule.factor_ > 0) || schedule.every_ < 1) return malformed(text);
  }
  return schedule;
}

double RateSchedule::factor(int64_t step, int64_t steps, int64_t perEpoch) const {
  if (step < warmup_) return static_cast<double>(step + 1) / static_cast<double>(warmup_);
  const double share = static_cast<double>(step - warmup_) / static_cast<double>(std::max<int64_t>(steps - warmup_, 1));
  const int64_t epoch = step / std::max<int64_t>(perEpoch, 1);
  switch (kind_) {
    case Kind::Linear:
      return std::max(0.0, 1 - share);
    case Kind::Cosine:
      return (1 + std::cos(std::numbers::pi * std::min(share, 1.0))) / 2;
    case Kind::Exponential:
    case Kind::Step:
      return std::pow(factor_, static_cast<double>(epoch / every_));
    case Kind::Constant:
      break;
  }
  return 1;
}

}  // namespace aglow
