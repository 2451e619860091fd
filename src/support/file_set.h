// Files that belong together, such as the object, header and weights of a bundle: they appear all at once or not at
// all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/file.h"
#include "support/temporary.h"

namespace aglow {

class FileSet {
public:
  using Pieces = std::span<const std::span<const std::byte>>;

  // How far files have come when they get their names: what only the system has is lost with its power.
  enum class Safe : uint8_t { OnDisk, InSystem };
  explicit FileSet(Safe safe = Safe::OnDisk) : safe_(safe) {}
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  // Without a commit nothing is left: neither files, nor folders that were made for them.
  ~FileSet();

  // Writes the pieces one after the other into a file beside the path, which gets its name with all others. Where the
  // system can do it, the file has no name until then, and vanishes with the process. Only regular files are replaced.
  Status add(const std::string& path, Pieces pieces, mode_t mode = 0666);
  Status add(const std::string& path, std::span<const std::byte> bytes) { return add(path, std::span(&bytes, 1)); }
  Status add(const std::string& path, std::string_view text) { return add(path, std::as_bytes(std::span(text))); }
  // A folder, with those above it.
  Status addFolder(const std::string& path);
  // What was added so far: paths, and bytes of each.
  std::vector<std::pair<std::string, uint64_t>> sizes() const;
  // Gives all files their names, or, on any fault (FileWrite), leaves everything as it was.
  Status commit();

private:
  struct Pending {
    std::string path;
    FileDescriptor nameless = FileDescriptor();
    std::optional<Temporary> named = {};
    uint64_t bytes = 0;
  };

  Status write(Pending& file, Pieces pieces, mode_t mode) const;

  Safe safe_;
  std::vector<Pending> files_;
  std::vector<Temporary> folders_;  // that were made, outermost first
};

// The files that add(files) adds.
template <class Add>
Status writeTogether(const Add& add) {
  FileSet files;
  AGLOW_OK(add(files));
  return files.commit();
}

// One file: on a fault what was at the path is still there.
Status writeFileAtomically(const std::string& path, FileSet::Pieces pieces, mode_t mode = 0666);
inline Status writeFileAtomically(const std::string& path, std::span<const std::byte> bytes) {
  return writeFileAtomically(path, std::span(&bytes, 1));
}

}  // namespace aglow
