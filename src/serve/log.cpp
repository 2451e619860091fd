#include "serve/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "serve/json_codec.h"

namespace aglow::serve {

void Log::write(LogLevel level, std::string_view event, Fields fields) const {
  if (!shows(level)) return;
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::string line = fmt::format(R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z","level":"{}","event":"{}")",
                                 fmt::gmtime(std::chrono::system_clock::to_time_t(now)), milliseconds,
                                 level == LogLevel::Errors ? "error" : "info", event);
  for (const auto& [key, value] : fields) {
    line += fmt::format(R"(,"{}":)", key);
    if (const auto* text = std::get_if<std::string_view>(&value)) line += jsonString(*text);
    if (const auto* number = std::get_if<int64_t>(&value)) line += fmt::format("{}", *number);
    if (const auto* real = std::get_if<double>(&value)) line += fmt::format("{:.3f}", *real);
  }
  line += "}\n";
  // One call, so that lines of several threads do not mix. Nobody is there to hear of a failure.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace aglow::serve
