// Other programs, run to their end, and folders that last as long as they are needed.
#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace aglow {

// A fresh folder that goes, with all that is in it, when its object does.
class TemporaryFolder {
public:
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Runs a program, found as a shell would find it; what it says goes to a file. Its exit code, kNoProgram where there is
// no such program, -1 where a signal ended it.
inline constexpr int kNoProgram = 127;
int runProgram(const std::vector<std::string>& words, const std::string& log);

// The bytes of a file; none where it cannot be read.
std::string readAll(const std::string& path);

}  // namespace aglow
