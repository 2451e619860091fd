// What a server tells of itself: one JSON object a line, on stderr.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace aglow::serve {

enum class LogLevel : uint8_t { Errors, Info, Requests };

class Log {
public:
  using Value = std::variant<std::string_view, int64_t, double>;
  using Fields = std::initializer_list<std::pair<std::string_view, Value>>;

  explicit Log(LogLevel level) : level_(level) {}
  bool shows(LogLevel level) const { return level <= level_; }
  // {"time": "2026-01-31T12:00:00.000Z", "level": "info", "event": "ready", …}
  void write(LogLevel level, std::string_view event, Fields fields) const;

private:
  LogLevel level_;
};

}  // namespace aglow::serve
