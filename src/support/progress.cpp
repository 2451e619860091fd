#include "support/progress.h"

#include <atomic>
#include <mutex>

namespace aglow {

namespace {

std::atomic<bool> shown = false;
std::mutex mutex;
std::function<void(const Progress&)> show;

}  // namespace

void reportProgress(const Progress& progress) {
  if (!shown.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex);
  if (show) show(progress);
}

void showProgress(std::function<void(const Progress&)> to) {
  const std::lock_guard lock(mutex);
  show = std::move(to);
  shown.store(static_cast<bool>(show), std::memory_order_release);
}

}  // namespace aglow
