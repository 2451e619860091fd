// Files as bytes: only regular ones, opened without blocking, mapped read-only and never copied.
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
  ~FileDescriptor();

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

private:
  int fd_;
};

// FileRead errors carry no place; mapFile's name the path.
Result<SharedBytes> mapDescriptor(const FileDescriptor& file);
Result<SharedBytes> mapFile(const std::string& path);

}  // namespace aglow
