#include "support/temporary.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace aglow {

namespace fs = std::filesystem;

namespace {

// Never destroyed: a signal may come while main returns.
struct Registry {
  std::recursive_mutex mutex;
  std::map<std::string, Temporary::Goes> paths;
  std::set<pid_t> leaders;
};

Registry& registry() {
  static auto* only = new Registry;
  return *only;
}

void remove(const std::string& path, Temporary::Goes goes) {
  std::error_code ignored;
  if (goes == Temporary::Goes::Wholly)
    fs::remove_all(path, ignored);
  else
    fs::remove(path, ignored);
}

// Waits until the last one is gone, and writes nothing any more.
void endGroup(pid_t leader) {
  constexpr int kPatience = 200;
  ::kill(-leader, SIGKILL);
  for (int i = 0; i < kPatience && ::kill(-leader, 0) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

Temporary::Temporary(std::string path, Goes goes) : path_(std::move(path)), goes_(goes) {
  const std::lock_guard lock(registry().mutex);
  registry().paths[path_] = goes;
}

Temporary::Temporary(Temporary&& other) noexcept : path_(std::exchange(other.path_, {})), goes_(other.goes_) {}

Temporary& Temporary::operator=(Temporary&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(goes_, other.goes_);
  return *this;
}

Temporary::~Temporary() {
  if (path_.empty()) return;
  const std::lock_guard lock(registry().mutex);
  remove(path_, goes_);
  registry().paths.erase(path_);
}

void Temporary::release() {
  const std::lock_guard lock(registry().mutex);
  registry().paths.erase(path_);
  path_.clear();
}

Result<TemporaryFolder> TemporaryFolder::create(const std::string& parent) {
  std::error_code fault;
  std::string name = ((parent.empty() ? fs::temp_directory_path(fault) : fs::path(parent)) / "aglow-XXXXXX").string();
  const Uninterrupted whole;
  if (fault || ::mkdtemp(name.data()) == nullptr)
    return Error{.code = Code::FileWrite, .message = "cannot create a temporary folder", .where = name};
  return TemporaryFolder(std::move(name));
}

RunningProgram::RunningProgram(pid_t leader) : leader_(leader) {
  const std::lock_guard lock(registry().mutex);
  registry().leaders.insert(leader_);
}

RunningProgram::~RunningProgram() {
  const std::lock_guard lock(registry().mutex);
  registry().leaders.erase(leader_);
}

Uninterrupted::Uninterrupted() : before_() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  lock_ = std::unique_lock(registry().mutex);
}

Uninterrupted::~Uninterrupted() {
  lock_.unlock();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void removeTemporaries() {
  Registry& all = registry();
  all.mutex.lock();
  for (const pid_t leader : all.leaders) endGroup(leader);
  // What lies in a folder comes after it.
  for (auto path = all.paths.rbegin(); path != all.paths.rend(); ++path) remove(path->first, path->second);
}

}  // namespace aglow
