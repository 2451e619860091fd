// Files as the compiler reads them: regular ones only, without blocking, and into memory of its own. Nothing is mapped:
// a file that changes while it is in use causes an error, and neither other bytes nor a signal.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "support/fork.h"

namespace aglow {

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

// Reads exactly these bytes; FileRead on a fault, or where the file ends earlier.
Status readAt(const FileDescriptor& file, uint64_t offset, std::span<std::byte> to);

// A regular file, open for reading. Safe from several threads.
class InputFile {
public:
  // FileRead for anything that is not a regular file. The errors of `open` name the path, those of others have no
  // place.
  static Result<std::shared_ptr<const InputFile>> open(const std::string& path);
  static Result<std::shared_ptr<const InputFile>> of(FileDescriptor file);

  uint64_t size() const { return stamp_.size; }
  // All of these bytes, as they were when the file was opened: FileRead where its size or its time of change is
  // another by now, or where bytes that were read before have changed.
  Status read(uint64_t offset, std::span<std::byte> to) const;

  // What changes when the content does. The inode's own time would change with links and permissions as well.
  struct Stamp {
    dev_t device = 0;
    ino_t number = 0;
    uint64_t size = 0;
    int64_t seconds = 0, nanoseconds = 0;

    bool operator==(const Stamp&) const = default;
  };
  const Stamp& stamp() const { return stamp_; }

private:
  InputFile(FileDescriptor file, const Stamp& stamp) : file_(std::move(file)), stamp_(stamp) {}
  static Result<Stamp> stampOf(const FileDescriptor& file);

  FileDescriptor file_;
  Stamp stamp_;
  mutable WholeMutex mutex_;
  mutable std::map<std::pair<uint64_t, uint64_t>, uint64_t> hashes_;  // of what was read, by offset and size
};

// A file's bytes at addresses of their own, filled in when they are asked for. Safe from several threads.
class FileBytes {
public:
  static Result<std::shared_ptr<const FileBytes>> create(std::shared_ptr<const InputFile> file);
  ~FileBytes();
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  std::span<const std::byte> bytes() const { return {base_, file_->size()}; }
  // Makes a part of them readable where it is.
  Status load(std::span<const std::byte> part) const;
  // Reads a part of them to another place, and keeps nothing here.
  Status copy(std::span<const std::byte> part, std::byte* to) const;

private:
  explicit FileBytes(std::shared_ptr<const InputFile> file);

  std::shared_ptr<const InputFile> file_;
  std::byte* base_ = nullptr;
  mutable WholeMutex mutex_;
  mutable std::vector<bool> loaded_;  // by block
};

// Bytes that live as long as their owner.
struct SharedBytes {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const void> owner = {};
  std::shared_ptr<const FileBytes> file = {};  // where they come from when they are asked for; none: they are there

  Status load(std::span<const std::byte> part) const { return file ? file->load(part) : Status(); }
  Status copy(std::span<const std::byte> part, std::byte* to) const;
};

// The bytes of a file; errors name the path. `openFile` reads them as they are asked for, `readFile` at once.
Result<SharedBytes> openFile(const std::string& path);
Result<SharedBytes> readFile(const std::string& path);

}  // namespace aglow
