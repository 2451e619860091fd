// Checks happen on the opened descriptor, so a file swapped under the same name changes nothing.
#include "support/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace aglow {

namespace {

Error readError(int number) { return {Code::FileRead, std::generic_category().message(number)}; }

Result<SharedBytes> openAndMap(const std::string& path) {
  // Without O_NONBLOCK a pipe would keep open() waiting for a writer.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) return readError(errno);
  return mapDescriptor(file);
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (valid()) ::close(fd_);
}

Result<SharedBytes> mapDescriptor(const FileDescriptor& file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return readError(errno);
  if (S_ISDIR(info.st_mode)) return Error{Code::FileRead, "is a folder, not a file"};
  if (!S_ISREG(info.st_mode)) return Error{Code::FileRead, "is no regular file"};
  if (info.st_size == 0) return SharedBytes{};

  const auto size = static_cast<size_t>(info.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return readError(errno);
  std::shared_ptr<const void> owner(address, [size](void* p) { ::munmap(p, size); });
  return SharedBytes{{static_cast<const std::byte*>(address), size}, std::move(owner)};
}

Result<SharedBytes> mapFile(const std::string& path) {
  auto mapped = openAndMap(path);
  if (!mapped.ok()) return std::move(mapped).error().at(path);
  return mapped;
}

}  // namespace aglow
