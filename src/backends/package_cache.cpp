#include "backends/package_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace aglow {

namespace {

namespace fs = std::filesystem;

// Those of earlier versions go like others.
constexpr std::string_view kEndings[] = {PackageCache::kPackage, PackageCache::kWeights, PackageCache::kKernels,
                                         PackageCache::kMeasured, ".code"};

// Whether it belongs to this user, and no other user can write to it; else why not.
const char* objection(const struct stat& info) {
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
  return nullptr;
}

// The folder, if it is to be trusted.
FileDescriptor openFolder(const std::string& folder) {
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!opened.valid() || ::fstat(opened.get(), &info) != 0 || objection(info) != nullptr) return FileDescriptor();
  return opened;
}

// Left by a process that was killed; those of running processes are younger.
bool isAbandoned(const fs::directory_entry& entry) {
  std::error_code fault;
  const std::string name = entry.path().filename().string();
  const auto age = fs::file_time_type::clock::now() - entry.last_write_time(fault);
  return !fault && name.starts_with(".aglow-") && age > std::chrono::hours(1);
}

struct Item {
  fs::file_time_type used;
  fs::path path;
  int64_t bytes;
};

// The files of a cache, that used last at the end.
std::vector<Item> itemsIn(const std::string& folder) {
  std::vector<Item> items;
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, fault)) {
    std::error_code gone;
    const bool own =
        std::find(std::begin(kEndings), std::end(kEndings), entry.path().extension()) != std::end(kEndings);
    if (!own || !entry.is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size(gone));
    const fs::file_time_type used = entry.last_write_time(gone);
    if (!gone) items.push_back({used, entry.path(), bytes});  // or it went with another process
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
  return items;
}

}  // namespace

FileDescriptor PackageCache::open(const std::string& name) const {
  if (folder_.empty()) return FileDescriptor();
  const FileDescriptor parent = openFolder(folder_);
  if (!parent.valid()) return FileDescriptor();
  FileDescriptor file(::openat(parent.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || objection(info) != nullptr)
    return FileDescriptor();
  // For eviction.
  ::futimens(file.get(), nullptr);
  return file;
}

bool PackageCache::prepare() const {
  if (folder_.empty()) return false;
  std::error_code fault;
  fs::create_directories(fs::path(folder_ + "/").parent_path().parent_path(), fault);
  ::mkdir(folder_.c_str(), 0700);
  return openFolder(folder_).valid() && ::access(folder_.c_str(), W_OK) == 0;
}

bool PackageCache::keep(const std::string& name, FileSet::Pieces pieces) const {
  int64_t bytes = 0;
  for (const std::span<const std::byte> piece : pieces) bytes += static_cast<int64_t>(piece.size());
  if (bytes > limit_ || !prepare()) return false;
  FileSet files(FileSet::Safe::InSystem);
  return files.add(folder_ + "/" + name, pieces, 0600).ok() && files.commit().ok();
}

void PackageCache::remove(const std::string& name) const {
  if (openFolder(folder_).valid()) ::unlink((folder_ + "/" + name).c_str());
}

Result<std::vector<PackageCache::Entry>> PackageCache::entries() const {
  std::vector<Item> items = itemsIn(folder_);
  if (const std::optional<std::string> why = whyRefused(folder_)) return Error{.code = Code::FileRead, .message = *why};
  std::reverse(items.begin(), items.end());
  std::vector<Entry> entries;
  const auto now = fs::file_time_type::clock::now();
  for (const Item& item : items)
    entries.push_back({.name = item.path.filename().string(),
                       .bytes = item.bytes,
                       .unusedSeconds = std::chrono::duration_cast<std::chrono::seconds>(now - item.used).count()});
  return entries;
}

Result<std::vector<PackageCache::Entry>> PackageCache::clear() const {
  AGLOW_TRY(std::vector<Entry> found, entries());
  for (const Entry& entry : found) {
    std::error_code fault;
    fs::remove(folder_ + "/" + entry.name, fault);  // gone already: as well
    if (fault)
      return Error{.code = Code::FileWrite,
                   .message = "a file cannot be removed: " + fault.message(),
                   .where = folder_ + "/" + entry.name};
  }
  return found;
}

void PackageCache::evict() const {
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, fault))
    if (isAbandoned(entry)) fs::remove(entry.path(), fault);
  const std::vector<Item> items = itemsIn(folder_);
  int64_t total = 0;
  for (const Item& item : items) total += item.bytes;
  for (const Item& item : items) {
    if (total <= limit_) return;
    fs::remove(item.path, fault);
    total -= item.bytes;
  }
}

std::optional<std::string> whyRefused(const std::string& folder) {
  struct stat info{};
  if (folder.empty() || ::stat(folder.c_str(), &info) != 0) return std::nullopt;
  const char* why = S_ISDIR(info.st_mode) ? objection(info) : "it is not a folder";
  if (why == nullptr) return std::nullopt;
  return fmt::format("compiled models are not kept in {}: {}", folder, why);
}

std::string cacheFolder(const std::string& word) {
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = word.empty() ? environment("AGLOW_CACHE_DIR") : word;
  if (folder == "off") return {};
  if (!folder.empty()) return folder;
  // Relative paths there are to be ignored.
  if (folder = environment("XDG_CACHE_HOME"); folder.starts_with('/')) return folder + "/aglow";
  if (folder = environment("HOME"); folder.starts_with('/')) return folder + "/.cache/aglow";
  return {};
}

}  // namespace aglow
