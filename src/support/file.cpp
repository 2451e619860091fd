// Reading by mapping, and writing by renaming.
#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace aglow {

namespace {

Error fault(Code code, const std::string& path, const std::string& what, int number = errno) {
  return Error{code, what + ": " + std::generic_category().message(number), path};
}

class Descriptor {
public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // Closing may bring the first news of a failed write, so a writer asks.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

private:
  int fd_;
};

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error notRegular(Code code, const std::string& path, mode_t mode) {
  return Error{code, std::string("expected a regular file, got ") + kindOf(mode), path};
}

// One name per process and call, and O_EXCL against what another process has left behind.
std::string temporaryName(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return folder + ".aglow-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
}

bool writeAll(int fd, std::span<const std::byte> bytes) {
  constexpr size_t kChunk = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool fill(Descriptor& file, std::span<const std::span<const std::byte>> pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return writeAll(file.get(), piece); }) &&
         ::fsync(file.get()) == 0 && file.close();
}

}  // namespace

Result<MappedFile> mapFile(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return fault(Code::FileRead, path, "cannot open");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fault(Code::FileRead, path, "cannot examine");
  if (!S_ISREG(info.st_mode)) return notRegular(Code::FileRead, path, info.st_mode);
  if (info.st_size == 0) return MappedFile{};

  const auto size = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return fault(Code::FileRead, path, "cannot map");
  std::shared_ptr<const void> owner(data, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
  return MappedFile{std::move(owner), static_cast<const std::byte*>(data), size};
}

Status writeFileAtomically(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  // Renaming over a device or a pipe would quietly replace it.
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return notRegular(Code::FileWrite, path, info.st_mode);

  std::string temporary;
  int fd = -1;
  do {
    temporary = temporaryName(path);
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) return fault(Code::FileWrite, path, "cannot create a file in this folder");

  Descriptor file(fd);
  if (fill(file, pieces) && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int number = errno;
  ::unlink(temporary.c_str());
  return fault(Code::FileWrite, path, "cannot write", number);
}

}  // namespace aglow
