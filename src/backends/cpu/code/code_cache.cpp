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

#include "support/file.h"
#include "support/hash.h"

namespace aglow::codegen {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".code";
constexpr uint64_t kMagic = 0x31656863'61636c67u;  // "glcache1"

struct Header {
  uint64_t magic, source[2], size, checksum;

  bool operator==(const Header&) const = default;
};

// Two hashes of the source, and its size mixed into both.
void hashSource(std::string_view source, uint64_t (&hash)[2]) {
  hash[0] = hashBytes(source.data(), source.size(), 1);
  hash[1] = hashBytes(source.data(), source.size(), 0x8badf00d);
}

Header headerOf(std::string_view source, std::string_view code) {
  Header header{.magic = kMagic, .source = {}, .size = code.size(), .checksum = hashBytes(code.data(), code.size(), 2)};
  hashSource(source, header.source);
  return header;
}

// Code runs with the rights of the user, so it must not be someone else's.
Result<SharedBytes> mapOwn(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || info.st_uid != ::geteuid())
    return Error{.code = Code::FileRead, .message = "no file of this user"};
  // For eviction.
  ::futimens(file.get(), nullptr);
  return mapDescriptor(file);
}

// Left behind by a process that was killed; those of running processes are younger.
bool isAbandoned(const fs::directory_entry& entry) {
  std::error_code fault;
  const std::string name = entry.path().filename().string();
  const auto age = fs::file_time_type::clock::now() - entry.last_write_time(fault);
  return !fault && name.starts_with(".aglow-") && age > std::chrono::hours(1);
}

}  // namespace

std::string CodeCache::pathOf(std::string_view source) const {
  uint64_t hash[2];
  hashSource(source, hash);
  return fmt::format("{}/{:016x}{:016x}{}", folder_, hash[0], hash[1], kEnding);
}

std::optional<std::string> CodeCache::find(std::string_view source) const {
  if (folder_.empty()) return std::nullopt;
  const Result<SharedBytes> file = mapOwn(pathOf(source));
  if (!file.ok() || file->bytes.size() < sizeof(Header)) return std::nullopt;
  Header header{};
  std::memcpy(&header, file->bytes.data(), sizeof header);
  // Copied before it is checked: the file may change, the copy does not.
  const std::string code(reinterpret_cast<const char*>(file->bytes.data()) + sizeof header,
                         file->bytes.size() - sizeof header);
  if (header != headerOf(source, code)) return std::nullopt;
  return code;
}

void CodeCache::keep(std::string_view source, const std::string& code) const {
  if (folder_.empty() || static_cast<int64_t>(code.size()) > limit_) return;
  std::error_code fault;
  if (fs::create_directories(folder_, fault)) fs::permissions(folder_, fs::perms::owner_all, fault);
  const Header header = headerOf(source, code);
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(code))};
  if (writeFileAtomically(pathOf(source), pieces).ok()) evict();
}

void CodeCache::evict() const {
  struct Item {
    fs::file_time_type used;
    fs::path path;
    int64_t bytes;
  };
  std::vector<Item> items;
  int64_t total = 0;
  std::error_code fault;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, fault)) {
    std::error_code gone;
    if (isAbandoned(entry)) fs::remove(entry.path(), gone);
    if (entry.path().extension() != kEnding || !entry.is_regular_file(gone)) continue;
    const auto bytes = static_cast<int64_t>(entry.file_size(gone));
    const fs::file_time_type used = entry.last_write_time(gone);
    if (gone) continue;  // by another process
    items.push_back({used, entry.path(), bytes});
    total += bytes;
  }
  if (total <= limit_) return;
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
  for (const Item& item : items) {
    if (total <= limit_) return;
    fs::remove(item.path, fault);
    total -= item.bytes;
  }
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
