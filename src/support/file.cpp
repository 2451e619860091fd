// Reading by mapping, and writing by renaming. What is read is checked on the opened descriptor, so a file swapped
// under the same name changes nothing.
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

namespace aglow {

namespace {

Error fault(Code code, const std::string& what, int number = errno) {
  return Error{code, what + ": " + std::generic_category().message(number)};
}

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error notRegular(Code code, mode_t mode) {
  return Error{code, std::string("expected a regular file, got ") + kindOf(mode)};
}

Result<SharedBytes> openAndMap(const std::string& path) {
  // Without O_NONBLOCK a pipe would keep open() waiting for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fault(Code::FileRead, "cannot open");
  return mapDescriptor(file);
}

// One name per process and call; O_EXCL guards against what another process has left behind.
std::string temporaryName(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  return folder + ".aglow-" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp";
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

bool fill(FileDescriptor& file, std::span<const std::span<const std::byte>> pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return writeAll(file, piece); }) &&
         ::fsync(file.get()) == 0 && file.close();
}

// Known by its type, so that parts of a mapping can be told from other bytes.
struct Unmap {
  size_t size;
  void operator()(const void* address) const { ::munmap(const_cast<void*>(address), size); }
};

Status createAndRename(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  // Renaming over a device or a pipe would quietly replace it.
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return notRegular(Code::FileWrite, info.st_mode);

  std::string temporary;
  FileDescriptor file;
  do {
    temporary = temporaryName(path);
    file = FileDescriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file.valid() && errno == EEXIST);
  if (!file.valid()) return fault(Code::FileWrite, "cannot create a file in this folder");

  if (fill(file, pieces) && ::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int number = errno;
  ::unlink(temporary.c_str());
  return fault(Code::FileWrite, "cannot write", number);
}

}  // namespace

bool FileDescriptor::close() { return !valid() || ::close(std::exchange(fd_, -1)) == 0; }

Result<SharedBytes> mapDescriptor(const FileDescriptor& file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fault(Code::FileRead, "cannot examine");
  if (!S_ISREG(info.st_mode)) return notRegular(Code::FileRead, info.st_mode);
  if (info.st_size == 0) return SharedBytes{};

  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return fault(Code::FileRead, "cannot map");
  std::shared_ptr<const void> owner(address, Unmap{size});
  return SharedBytes{{static_cast<const std::byte*>(address), size}, std::move(owner)};
}

std::shared_ptr<const void> partOwner(const std::shared_ptr<const void>& owner, std::span<const std::byte> part) {
  constexpr size_t kWorthIt = 64 << 10;
  if (part.size() < kWorthIt || std::get_deleter<Unmap>(owner) == nullptr) return owner;
  return {part.data(), [owner, part](const void*) {
            const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
            const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
            const auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
            ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
          }};
}

Result<SharedBytes> mapFile(const std::string& path) {
  auto mapped = openAndMap(path);
  if (!mapped.ok()) return std::move(mapped).error().at(path);
  return mapped;
}

Status writeFileAtomically(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  Status written = createAndRename(path, pieces);
  if (!written.ok()) return std::move(written).error().at(path);
  return written;
}

}  // namespace aglow
