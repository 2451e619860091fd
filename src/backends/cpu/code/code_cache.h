// Generated code kept between runs of the compiler, by what it was generated from. Files appear whole or not at all,
// are checked when they are read, and a cache that cannot be read or written is not a fault: code is generated again.
// Code runs with the rights of the user: only files and folders are used that are the user's own, and that no other
// user can write to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/error.h"

namespace aglow::codegen {

class CodeCache {
public:
  static constexpr int64_t kDefaultLimit = int64_t{256} << 20;

  // An empty folder: nothing is found or kept. Beyond the limit the files that were not used for longest go.
  explicit CodeCache(std::string folder, int64_t limitBytes = kDefaultLimit)
      : folder_(std::move(folder)), limit_(limitBytes) {}

  // The source is everything the code depends on, as text; what has the same SHA-256 is the same.
  std::optional<std::string> find(std::string_view source) const;
  void keep(std::string_view source, const std::string& code) const;

  // The same for code in several objects.
  std::optional<std::vector<std::string>> findObjects(std::string_view source) const;
  void keepObjects(std::string_view source, std::span<const std::string> objects) const;

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
  void evict() const;

  std::string folder_;
  int64_t limit_;
};

// Why a folder that is there is not used as a cache, in words; none where it may be.
std::optional<std::string> whyRefused(const std::string& folder);

// What a user or the environment says: a folder, or "off"; for an empty word AGLOW_CACHE_DIR, else the user's folder
// for such things. Empty when there is none.
std::string cacheFolder(const std::string& word);

}  // namespace aglow::codegen
