// What is on the disk, or runs, for a while only: it goes when its owner does, or when the program is ended early.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>

#include "support/error.h"

namespace aglow {

// A path that goes. Made under an Uninterrupted together with what is at the path, so that no end comes in between.
class Temporary {
public:
  // Files and folders with all that is in them, or folders only as long as they are empty.
  enum class Goes : uint8_t { Wholly, IfEmpty };

  explicit Temporary(std::string path, Goes goes = Goes::Wholly);
  Temporary(Temporary&& other) noexcept;
  Temporary& operator=(Temporary&& other) noexcept;
  ~Temporary();

  const std::string& path() const { return path_; }
  // It has another name by now, or is to stay.
  void release();

private:
  std::string path_;
  Goes goes_;
};

// A fresh folder for files that no other user can see.
class TemporaryFolder {
public:
  // In a folder, or where temporary files are.
  static Result<TemporaryFolder> create(const std::string& parent = {});

  const std::string& path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return path() + "/" + name; }

private:
  explicit TemporaryFolder(std::string path) : folder_(std::move(path)) {}
  Temporary folder_;
};

// Another program that is running: the leader of a group of processes, who end with this one.
class RunningProgram {
public:
  explicit RunningProgram(pid_t leader);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

private:
  pid_t leader_;
};

// While one lives, signals that this thread can get wait, and so does removeTemporaries.
class Uninterrupted {
public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;

private:
  std::unique_lock<std::recursive_mutex> lock_;
  sigset_t before_;
};

// Takes away all that is temporary, for a program that ends now. A thread that wants something temporary afterwards, or
// is Uninterrupted, waits for ever. From any thread, but no signal handler.
void removeTemporaries();

}  // namespace aglow
