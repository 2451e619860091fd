// The process shares this one's memory and stops the calling thread, as that of posix_spawn() does before it becomes
// another program. So it runs neither handlers nor what others do on fork(), and may call nothing but the system.
#include "support/give_names.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>

namespace aglow {

namespace {

struct Task {
  std::span<const NewName> files;
  bool done = false;
  size_t file = 0;
  int number = 0;
};

// Whether there is something at the path.
bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

// Keeps what is at the path under another name. Some file systems have no second names for a file.
bool setAside(const NewName& file) {
  if (!exists(file.path)) return true;
  return ::link(file.path.c_str(), file.former.c_str()) == 0 || ::rename(file.path.c_str(), file.former.c_str()) == 0;
}

bool giveName(const NewName& file, bool isOnly) {
  const char* now = file.isNameless ? file.temporary.c_str() : file.from.c_str();
  if (file.isNameless && ::linkat(AT_FDCWD, file.from.c_str(), AT_FDCWD, now, AT_SYMLINK_FOLLOW) != 0) return false;
  return (isOnly || setAside(file)) && ::rename(now, file.path.c_str()) == 0;
}

void restore(const NewName& file, bool named) {
  if (file.isNameless) ::unlink(file.temporary.c_str());
  if (!exists(file.former)) {
    if (named) ::unlink(file.path.c_str());
  } else if (::rename(file.former.c_str(), file.path.c_str()) == 0) {
    ::unlink(file.former.c_str());  // renaming does nothing where both are the same file
  }
}

void perform(Task& task) {
  for (; task.file < task.files.size(); ++task.file)
    if (!giveName(task.files[task.file], task.files.size() == 1)) break;
  task.done = task.file == task.files.size();
  if (!task.done) task.number = errno;
  if (task.done)
    for (const NewName& file : task.files) ::unlink(file.former.c_str());
  else
    for (size_t i = task.file + 1; i-- > 0;) restore(task.files[i], i < task.file);
}

int performApart(void* task) {
  // Signals for this group of processes are not meant for the new one.
  ::setpgid(0, 0);
  perform(*static_cast<Task*>(task));
  return 0;
}

}  // namespace

std::optional<NamingFault> giveNames(std::span<const NewName> files) {
  Task task{.files = files};
  constexpr size_t kStack = size_t{64} << 10;
  const auto stack = std::make_unique<std::byte[]>(kStack);
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  // Without a signal when it ends, which does not concern the program.
  const pid_t child = ::clone(performApart, stack.get() + kStack, CLONE_VM | CLONE_VFORK, &task);
  if (child < 0)
    perform(task);
  else
    while (::waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (task.done) return std::nullopt;
  return NamingFault{task.file, task.number};
}

}  // namespace aglow
