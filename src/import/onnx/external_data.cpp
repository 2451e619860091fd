// All checks are on the opened descriptor, and the bytes come from that same descriptor: a name that is swapped
// between check and use leads nowhere.
#include "import/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <system_error>
#include <vector>

#include "support/quote.h"
#include "support/sizes.h"

#if defined(SYS_openat2) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define AGLOW_HAS_OPENAT2 1
#endif

namespace aglow::onnx {

namespace {

constexpr int kOpenLeaf = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
constexpr int kOpenParent = O_PATH | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW;

// Some exporters write a file for each tensor. A process has about a thousand descriptors in all.
constexpr size_t kMostOpen = 64;

Error refusal(std::string message) { return {Code::BadExternalData, std::move(message)}; }

struct Entry {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

Result<int64_t> parseCount(std::string_view key, const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < 0)
    return refusal(fmt::format("{} {} is not a number of bytes", key, quoted(text)));
  return value;
}

Result<Entry> parseEntry(const StringPairs& entries) {
  Entry out;
  for (const auto& [key, value] : entries) {
    if (key == "location") out.location = value;
    if (key == "offset") {
      AGLOW_TRY(out.offset, parseCount(key, value));
    }
    if (key == "length") {
      AGLOW_TRY(out.length, parseCount(key, value));
    }
  }
  if (out.location.empty()) return refusal("the entry names no location");
  return out;
}

// The path's components without "." and empty ones.
Result<std::vector<std::string>> split(const std::string& location) {
  if (location.front() == '/') return refusal("absolute paths are refused");
  if (location.find('\0') != std::string::npos) return refusal("the path holds a zero byte");
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    std::string part = location.substr(begin, end - begin);
    if (part == "..") return refusal("paths with '..' are refused");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
    begin = end + 1;
  }
  if (parts.empty()) return refusal("the path names no file");
  return parts;
}

std::string join(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += (path.empty() ? "" : "/") + part;
  return path;
}

// Opening functions give errno's value when they fail.
using Opened = std::variant<FileDescriptor, int>;

Opened opened(int fd) {
  if (fd < 0) return errno;
  return FileDescriptor(fd);
}

Opened openByComponents(int folder, const std::vector<std::string>& parts) {
  FileDescriptor parent;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    Opened next = opened(::openat(parent.valid() ? parent.get() : folder, parts[i].c_str(), kOpenParent));
    if (const int* error = std::get_if<int>(&next)) return *error;
    parent = std::get<FileDescriptor>(std::move(next));
  }
  return opened(::openat(parent.valid() ? parent.get() : folder, parts.back().c_str(), kOpenLeaf));
}

// Leads wherever links lead; what is there is checked all the same.
Opened openThroughLinks(int folder, const std::vector<std::string>& parts) {
  return opened(::openat(folder, join(parts).c_str(), kOpenLeaf & ~O_NOFOLLOW));
}

Opened openByKernel(int folder, const std::vector<std::string>& parts) {
#ifdef AGLOW_HAS_OPENAT2
  open_how how{};
  how.flags = kOpenLeaf;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string path = join(parts);
  Opened file = opened(static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how)));
  const int* error = std::get_if<int>(&file);
  // Old kernels do not know the call, and some sandboxes forbid it.
  if (error == nullptr || (*error != ENOSYS && *error != EPERM)) return file;
#endif
  return openByComponents(folder, parts);
}

constexpr const char* kFollow = "if you trust the model's author, --follow-links reads it all the same";

Error refusalOf(int error) {
  // A link in the middle of a path shows as "not a folder" when it is opened as one without being followed.
  if (error == ELOOP || error == ENOTDIR)
    return refusal("it is, or leads through, a link or something that is not a folder").withHint(kFollow);
  return refusal(std::generic_category().message(error));
}

}  // namespace

ExternalFiles::ExternalFiles(const std::string& folder, Lookup lookup)
    : folder_(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), lookup_(lookup) {}

Result<std::shared_ptr<const InputFile>> ExternalFiles::open(const std::string& location) {
  if (!folder_.valid()) return refusal("the model's folder cannot be opened");
  AGLOW_TRY(const auto parts, split(location));
  const std::string path = join(parts);
  const std::lock_guard lock(mutex_);
  const auto known = files_.find(path);
  if (known != files_.end() && known->second.file) return known->second.file;

  Opened file = followsLinks_               ? openThroughLinks(folder_.get(), parts)
                : lookup_ == Lookup::Kernel ? openByKernel(folder_.get(), parts)
                                            : openByComponents(folder_.get(), parts);
  if (const int* error = std::get_if<int>(&file)) return refusalOf(*error);
  FileDescriptor descriptor = std::get<FileDescriptor>(std::move(file));
  struct stat info{};
  if (::fstat(descriptor.get(), &info) != 0) return refusalOf(errno);
  if (!S_ISREG(info.st_mode)) return refusal("it is not a regular file");
  // A second name may lie outside of the model's folder, and lend a file the model's author may not read.
  if (info.st_nlink != 1 && !followsLinks_)
    return refusal("the file has hard links").withHint(fmt::format("copy the file; or, {}", kFollow));
  auto opened = InputFile::of(std::move(descriptor));
  if (!opened.ok()) return refusal(opened.error().message);
  if (known == files_.end()) {
    const bool keep = open_ < kMostOpen;
    open_ += keep ? 1 : 0;
    files_[path] = {.stamp = (*opened)->stamp(), .file = keep ? *opened : nullptr};
  } else if (known->second.stamp != (*opened)->stamp()) {
    return refusal("the file has changed since it was first opened");
  }
  return opened;
}

Status ExternalFiles::Part::read(std::span<std::byte> to) const {
  Status done = file->read(static_cast<uint64_t>(offset), to);
  if (!done.ok()) return std::move(done).error().at(place);
  return done;
}

Result<ExternalFiles::Part> ExternalFiles::find(const StringPairs& entries, int64_t expected) {
  AGLOW_TRY(const Entry entry, parseEntry(entries));
  std::string place = "external data " + quoted(entry.location);
  auto file = open(entry.location);
  if (!file.ok()) return std::move(file).error().at(place);

  const auto size = static_cast<int64_t>((*file)->size());
  const auto length = entry.length ? entry.length : checkedSub(size, entry.offset);
  const auto end = length ? checkedAdd(entry.offset, *length) : std::nullopt;
  if (entry.offset > size || !end || *end > size)
    return refusal(fmt::format("offset {} and length {} leave the file's {} bytes", entry.offset,
                               entry.length.value_or(0), size))
        .at(place);
  if (*length != expected)
    return refusal(fmt::format("expected {} bytes for the tensor's shape, got {}", expected, *length)).at(place);
  return Part{*std::move(file), entry.offset, *length, std::move(place)};
}

}  // namespace aglow::onnx
