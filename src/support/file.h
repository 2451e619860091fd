// Files as the compiler uses them: read by mapping, never copied; written all or nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "support/error.h"

namespace aglow {

// Bytes that live as long as their owner.
struct SharedBytes {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const void> owner = {};
};

// Closes what it holds; a negative number means none.
class FileDescriptor {
public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // False when the system reports a fault; for a writer that may be the first news of it.
  bool close();

private:
  int fd_;
};

// Maps a regular file for reading; anything else is E801, and pipes never block. mapFile's errors name the path,
// mapDescriptor's have no place.
Result<SharedBytes> mapFile(const std::string& path);
Result<SharedBytes> mapDescriptor(const FileDescriptor& file);

// An owner of some of the bytes that `owner` keeps. Where those are a mapped file, their pages leave the process's
// memory when the last owner of the part goes; they are still in the file.
std::shared_ptr<const void> partOwner(const std::shared_ptr<const void>& owner, std::span<const std::byte> part);

// Writes the pieces one after the other to a temporary file in the same folder, which then takes the name. On any
// fault (E802) what was at the path is still there, and no partial file is. Only regular files are replaced.
Status writeFileAtomically(const std::string& path, std::span<const std::span<const std::byte>> pieces);
inline Status writeFileAtomically(const std::string& path, std::span<const std::byte> bytes) {
  return writeFileAtomically(path, std::span(&bytes, 1));
}

}  // namespace aglow
