#include "backends/cpu/code/code_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "support/file_set.h"
#include "support/sha256.h"

namespace aglow::codegen {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".code";
constexpr uint64_t kMagic = 0x32656863'61636c67u;  // "glcache2"

struct Header {
  uint64_t magic, size;
  Digest source, code;

  bool operator==(const Header&) const = default;
};

Header headerOf(const Digest& source, std::string_view code) {
  return {.magic = kMagic, .size = code.size(), .source = source, .code = sha256(code)};
}

std::string nameOf(const Digest& source) { return hexadecimal(source) + std::string(kEnding); }

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

// All bytes of a file, if it is to be trusted.
std::optional<std::string> readOwn(const std::string& folder, const std::string& name, int64_t most) {
  const FileDescriptor parent = openFolder(folder);
  if (!parent.valid()) return std::nullopt;
  const FileDescriptor file(::openat(parent.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || objection(info) != nullptr)
    return std::nullopt;
  // For eviction.
  ::futimens(file.get(), nullptr);
  if (info.st_size > most) return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!readAt(file, 0, std::as_writable_bytes(std::span(bytes))).ok()) return std::nullopt;
  return bytes;
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
    if (entry.path().extension() != kEnding || !entry.is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size(gone));
    const fs::file_time_type used = entry.last_write_time(gone);
    if (!gone) items.push_back({used, entry.path(), bytes});  // or it went with another process
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
  return items;
}

}  // namespace

std::optional<std::string> CodeCache::find(std::string_view source) const {
  if (folder_.empty()) return std::nullopt;
  const Digest digest = sha256(source);
  std::optional<std::string> file = readOwn(folder_, nameOf(digest), limit_ + int64_t{sizeof(Header)});
  if (!file || file->size() < sizeof(Header)) return std::nullopt;
  Header header{};
  std::memcpy(&header, file->data(), sizeof header);
  file->erase(0, sizeof header);
  if (header != headerOf(digest, *file)) return std::nullopt;
  return file;
}

void CodeCache::keep(std::string_view source, const std::string& code) const {
  if (folder_.empty() || static_cast<int64_t>(code.size()) > limit_) return;
  std::error_code fault;
  fs::create_directories(fs::path(folder_ + "/").parent_path().parent_path(), fault);
  ::mkdir(folder_.c_str(), 0700);
  if (!openFolder(folder_).valid()) return;
  const Digest digest = sha256(source);
  const Header header = headerOf(digest, code);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(code))};
  if (writeFileAtomically(folder_ + "/" + nameOf(digest), pieces, 0600).ok()) evict();
}

// Each object follows its size.
std::optional<std::vector<std::string>> CodeCache::findObjects(std::string_view source) const {
  const std::optional<std::string> joined = find(source);
  if (!joined) return std::nullopt;
  std::vector<std::string> objects;
  for (std::string_view rest = *joined; !rest.empty();) {
    uint64_t size = 0;
    if (rest.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    if (rest.size() < size) return std::nullopt;
    objects.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return objects;
}

void CodeCache::keepObjects(std::string_view source, std::span<const std::string> objects) const {
  std::string joined;
  for (const std::string& object : objects) {
    const uint64_t size = object.size();
    joined.append(reinterpret_cast<const char*>(&size), sizeof size);
    joined += object;
  }
  keep(source, joined);
}

Result<std::vector<CodeCache::Entry>> CodeCache::entries() const {
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

Result<std::vector<CodeCache::Entry>> CodeCache::clear() const {
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

void CodeCache::evict() const {
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
  return fmt::format("generated code is not kept in {}: {}", folder, why);
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

}  // namespace aglow::codegen
