#include "support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <system_error>

#include "support/file.h"
#include "support/temporary.h"

extern char** environ;

namespace aglow {

namespace {

// A group of its own, which can be ended as a whole, with signals as programs expect them.
class Attributes {
public:
  Attributes() {
    posix_spawnattr_init(&value_);
    posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&value_, 0);
    sigset_t signals;
    ::sigemptyset(&signals);
    posix_spawnattr_setsigmask(&value_, &signals);
    for (const int signal : {SIGPIPE, SIGXFSZ}) ::sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&value_, &signals);
  }
  ~Attributes() { posix_spawnattr_destroy(&value_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &value_; }

private:
  posix_spawnattr_t value_{};
};

}  // namespace

Result<int> runProgram(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::string temporary = "TMPDIR=" + folder;
  std::vector<char*> variables = {temporary.data()};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("TMPDIR=")) variables.push_back(*variable);
  variables.push_back(nullptr);
  const std::string log = folder + "/log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const Attributes attributes;
  pid_t child = 0;
  int failed = 0;
  std::optional<RunningProgram> running;
  {
    const Uninterrupted whole;
    failed = posix_spawnp(&child, arguments.front(), &actions, attributes.get(), arguments.data(), variables.data());
    if (failed == 0) running.emplace(child);
  }
  posix_spawn_file_actions_destroy(&actions);
  if (failed == EAGAIN || failed == ENOMEM)
    return Error{Code::OutOfMemory, words.front() + " cannot be started: " + std::generic_category().message(failed)};
  if (failed != 0) return kNoProgram;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return kNoProgram;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string readAll(const std::string& path) {
  const auto file = readFile(path);
  if (!file.ok()) return {};
  return {reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()};
}

}  // namespace aglow
