#include "cli/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "support/progress.h"

namespace aglow::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kDelay = std::chrono::milliseconds(400), kEvery = std::chrono::milliseconds(200);

// Draws from a thread of its own, so that time goes on while nobody reports.
class Line {
public:
  void report(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    if (what_ != progress.what) begin_ = Clock::now();
    what_ = progress.what;
    done_ = progress.done;
    count_ = progress.count;
    active_ = true;
    if (!drawing_) {
      drawing_ = true;
      try {
        std::thread([this] { draw(); }).detach();
      } catch (const std::system_error&) {
        // Without a thread there is no line.
      }
    }
  }

  void clear() {
    const std::lock_guard lock(mutex_);
    active_ = false;
    if (visible_) write("\r\033[K");
    visible_ = false;
    begin_ = Clock::now();
  }

private:
  void draw() {
    while (true) {
      std::this_thread::sleep_for(kEvery);
      const std::lock_guard lock(mutex_);
      const auto since = Clock::now() - begin_;
      if (!active_ || (!visible_ && since < kDelay)) continue;
      winsize size{};
      const int width = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
      write("\r" + progressText(what_, done_, count_, std::chrono::duration<double>(since).count(), width) + "\033[K");
      visible_ = true;
    }
  }

  static void write(const std::string& text) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  }

  std::mutex mutex_;
  std::string what_;
  int64_t done_ = 0, count_ = 0;
  Clock::time_point begin_ = Clock::now();
  bool active_ = false, visible_ = false, drawing_ = false;
};

// Never destroyed: its thread draws until the program ends.
Line& line() {
  static Line* const kLine = new Line;
  return *kLine;
}

std::string timeText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

bool started = false;

}  // namespace

std::string progressText(std::string_view what, int64_t done, int64_t count, double seconds, int width) {
  constexpr int64_t kBar = 24;
  std::string text;
  if (count > 0) {
    const int64_t filled = std::min(done, count) * kBar / count;
    text = fmt::format("[{}{}] ", std::string(static_cast<size_t>(filled), '#'),
                       std::string(static_cast<size_t>(kBar - filled), ' '));
  }
  text += what;
  if (count > 0) text += fmt::format(", {} of {}", done, count);
  text += ", " + timeText(seconds);
  if (done > 0 && done < count)
    text += fmt::format(", {} left", timeText(seconds * static_cast<double>(count - done) / static_cast<double>(done)));
  if (width > 1 && text.size() >= static_cast<size_t>(width)) text.resize(static_cast<size_t>(width) - 1);
  return text;
}

void startProgressLine() {
  const char* terminal = std::getenv("TERM");
  if (::isatty(STDERR_FILENO) != 1 || (terminal != nullptr && std::string_view(terminal) == "dumb")) return;
  started = true;
  showProgress([](const Progress& progress) { line().report(progress); });
}

void clearProgressLine() {
  if (started) line().clear();
}

}  // namespace aglow::cli
