// Every file is written whole, and, unless told otherwise, is safe on the disk, before the first one gets its name.
#include "support/file_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "support/give_names.h"

namespace aglow {

namespace {

namespace fs = std::filesystem;

// Each file without a name takes a descriptor.
constexpr size_t kMostNameless = 32;

Error fault(const std::string& what, int number = errno) {
  return Error{Code::FileWrite, what + ": " + std::generic_category().message(number)};
}

std::string folderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// A name that is not taken, on this or another machine that sees the folder.
std::string temporaryName(const std::string& path) {
  uint64_t number = 0;
  if (::getentropy(&number, sizeof number) != 0)
    number = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return folderOf(path) + ".aglow-" + std::to_string(number) + ".tmp";
}

// How a descriptor's file is found under a name.
std::string pathOf(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

// A write beyond the limit on the size of files raises a signal that ends the process; here it is a fault like others.
class SizeSignal {
public:
  SizeSignal() {
    ::sigemptyset(&only_);
    ::sigaddset(&only_, SIGXFSZ);
    sigset_t pending;
    ::sigpending(&pending);
    wasPending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  ~SizeSignal() {
    const int number = errno;
    const timespec now{};
    if (!wasPending_) ::sigtimedwait(&only_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  SizeSignal(const SizeSignal&) = delete;
  SizeSignal& operator=(const SizeSignal&) = delete;

private:
  sigset_t only_{}, before_{};
  bool wasPending_ = false;
};

// Renaming over a device or a pipe would quietly replace it.
Status checkReplaceable(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return {};
  return Error{Code::FileWrite, S_ISDIR(info.st_mode) ? "expected a regular file, got a folder"
                                                      : "expected a regular file, got a pipe, a socket or a device"};
}

bool writeAll(const FileDescriptor& file, std::span<const std::byte> bytes) {
  constexpr size_t kChunk = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool fill(const FileDescriptor& file, FileSet::Pieces pieces, FileSet::Safe safe) {
  const SizeSignal held;
  return std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return writeAll(file, piece); }) &&
         (safe == FileSet::Safe::InSystem || ::fsync(file.get()) == 0);
}

}  // namespace

Status FileSet::write(Pending& file, Pieces pieces, mode_t mode) const {
  AGLOW_OK(checkReplaceable(file.path));
  const auto nameless =
      std::count_if(files_.begin(), files_.end(), [](const Pending& other) { return other.nameless.valid(); });
  FileDescriptor opened;
  if (static_cast<size_t>(nameless) < kMostNameless)
    opened = FileDescriptor(::open(folderOf(file.path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
  // Without /proc it could not get a name.
  if (opened.valid() && ::access(pathOf(opened).c_str(), F_OK) == 0) {
    if (!fill(opened, pieces, safe_)) return fault("cannot write");
    file.nameless = std::move(opened);
    return {};
  }
  {
    const Uninterrupted whole;
    std::string name = temporaryName(file.path);
    opened = FileDescriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!opened.valid()) return fault("cannot create a file in this folder");
    file.named.emplace(std::move(name));
  }
  if (!fill(opened, pieces, safe_) || !opened.close()) return fault("cannot write");
  return {};
}

Status FileSet::add(const std::string& path, Pieces pieces, mode_t mode) {
  Pending file{.path = path};
  if (Status written = write(file, pieces, mode); !written.ok()) return std::move(written).error().at(path);
  for (const std::span<const std::byte> piece : pieces) file.bytes += piece.size();
  files_.push_back(std::move(file));
  return {};
}

Status FileSet::addFolder(const std::string& path) {
  std::error_code failed;
  std::vector<fs::path> missing;
  for (fs::path at = path; !at.empty() && !fs::exists(at, failed) && !failed; at = at.parent_path())
    if (at.has_filename()) missing.push_back(at);
  for (; !missing.empty() && !failed; missing.pop_back()) {
    const Uninterrupted whole;
    if (fs::create_directory(missing.back(), failed))
      folders_.emplace_back(missing.back().string(), Temporary::Goes::IfEmpty);
  }
  if (!failed && !fs::is_directory(path, failed) && !failed) failed = std::make_error_code(std::errc::not_a_directory);
  if (!failed) return {};
  return Error{.code = Code::FileWrite, .message = "cannot create the folder: " + failed.message(), .where = path};
}

std::vector<std::pair<std::string, uint64_t>> FileSet::sizes() const {
  std::vector<std::pair<std::string, uint64_t>> sizes;
  for (const Pending& file : files_) sizes.emplace_back(file.path, file.bytes);
  return sizes;
}

Status FileSet::commit() {
  std::vector<NewName> names;
  for (const Pending& file : files_) {
    if (Status status = checkReplaceable(file.path); !status.ok()) return std::move(status).error().at(file.path);
    names.push_back({.path = file.path,
                     .from = file.named ? file.named->path() : pathOf(file.nameless),
                     .temporary = temporaryName(file.path),
                     .former = temporaryName(file.path),
                     .isNameless = !file.named});
  }
  const Uninterrupted whole;
  if (const auto failed = giveNames(names)) return fault("cannot write", failed->number).at(names[failed->file].path);
  for (Pending& file : files_)
    if (file.named) file.named->release();
  files_.clear();
  for (Temporary& folder : folders_) folder.release();
  folders_.clear();
  return {};
}

FileSet::~FileSet() {
  files_.clear();
  while (!folders_.empty()) folders_.pop_back();
}

Status writeFileAtomically(const std::string& path, FileSet::Pieces pieces, mode_t mode) {
  return writeTogether([&](FileSet& files) { return files.add(path, pieces, mode); });
}

}  // namespace aglow
