// Files of compiled models kept between runs of the compiler. They appear whole or not at all, and a folder that cannot
// be read or written is not a fault: the model is compiled again. Code runs with the rights of the user: only files and
// folders are used that are the user's own, and that no other user can write to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"
#include "support/file_set.h"

namespace aglow {

class PackageCache {
public:
  static constexpr int64_t kDefaultLimit = int64_t{4} << 30;
  // How names of files end: packages, and constants of theirs that are large; of devices kernels as the driver built
  // them, and what was measured.
  static constexpr const char *kPackage = ".aglow", *kWeights = ".weights", *kKernels = ".kernels",
                              *kMeasured = ".measured";

  // An empty folder: nothing is found or kept. Beyond the limit the files that were not used for longest go.
  explicit PackageCache(std::string folder, int64_t limitBytes = kDefaultLimit)
      : folder_(std::move(folder)), limit_(limitBytes) {}

  // A file that is to be trusted, open for reading, as the one used last; not valid where there is none.
  FileDescriptor open(const std::string& name) const;
  // Makes the folder; false where nothing can be kept in it.
  bool prepare() const;
  // Whether the file is there afterwards. It is not safe on the disk: whoever reads it looks at its bytes.
  bool keep(const std::string& name, FileSet::Pieces pieces) const;
  void remove(const std::string& name) const;
  // Back to the limit.
  void evict() const;

  // What is kept, that used last first. FileRead where the folder is there but may not be used.
  struct Entry {
    std::string name;
    int64_t bytes = 0;
    int64_t unusedSeconds = 0;
  };
  Result<std::vector<Entry>> entries() const;
  // Removes all of it, and gives what it was. FileWrite where something stays.
  Result<std::vector<Entry>> clear() const;
  int64_t limit() const { return limit_; }

private:
  std::string folder_;
  int64_t limit_;
};

// Why a folder that is there is not used as a cache, in words; none where it may be.
std::optional<std::string> whyRefused(const std::string& folder);

// What a user or the environment says: a folder, or "off"; for an empty word AGLOW_CACHE_DIR, else the user's folder
// for such things. Empty when there is none.
std::string cacheFolder(const std::string& word);

}  // namespace aglow
