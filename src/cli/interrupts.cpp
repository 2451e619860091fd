// A thread waits for the signals that no other gets. A handler could do next to nothing: whatever it interrupts may
// hold the locks that it needs.
#include "cli/interrupts.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <string_view>
#include <system_error>
#include <thread>

#include "support/error.h"
#include "support/temporary.h"

namespace aglow::cli {

namespace {

constexpr int kExit = static_cast<int>(ExitCode::Interrupted);

void say() {
  constexpr std::string_view kText = "error[E901] interrupted\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, kText.data(), kText.size());
}

// Those that the one who started the program does not want to be ignored, as nohup does with SIGHUP.
sigset_t wanted() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) ::sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

void watchSignals() {
  const sigset_t signals = wanted();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread([signals] {
      int signal = 0;
      while (::sigwait(&signals, &signal) != 0 || signal == 0) {
      }
      say();
      removeTemporaries();
      ::_exit(kExit);
    }).detach();
  } catch (const std::system_error&) {
    // Without a thread: most temporary files have no names, and go by themselves.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      if (::sigismember(&signals, signal) == 1)
        std::signal(signal, [](int) {
          say();
          ::_exit(kExit);
        });
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace aglow::cli
