#include "backends/cpu/package/package_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "support/block_hash.h"
#include "support/hash.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow {

#ifdef AGLOW_LLVM
namespace codegen {
extern const char* const kCodeHash;  // from cmake/code_hash.cmake
}
#endif

namespace {

// What code and the program around it agree on may change with every build, so a package names its build. A build that
// generates no code runs what its version wrote.
constexpr size_t kHashDigits = 16;

}  // namespace

std::string packageVersion() {
#ifdef AGLOW_LLVM
  return fmt::format("{} {}", AGLOW_VERSION, std::string_view(codegen::kCodeHash).substr(0, kHashDigits));
#else
  return AGLOW_VERSION;
#endif
}

namespace {

bool isOwn(std::string_view version) {
  const std::string own = packageVersion();
  return version == own || (own == AGLOW_VERSION && version.starts_with(own + " "));
}

constexpr uint64_t kPage = 4096;
constexpr uint32_t kFormat = 1;
constexpr uint32_t kMostSections = 1024;

uint64_t pageAfter(uint64_t end) { return static_cast<uint64_t>(alignUp(static_cast<int64_t>(end), kPage)); }

// Of pieces one after the other, filled up with zeros to whole lines.
class SectionHash {
public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= sizeof line_) {
        const size_t lines = bytes.size() / sizeof line_;
        hash_.add(bytes.data(), static_cast<int64_t>(lines));
        bytes = bytes.subspan(lines * sizeof line_);
        continue;
      }
      const size_t taken = std::min(bytes.size(), sizeof line_ - filled_);
      std::memcpy(line_ + filled_, bytes.data(), taken);
      filled_ += taken;
      bytes = bytes.subspan(taken);
      if (filled_ == sizeof line_) flush();
    }
  }
  uint64_t value() {
    if (filled_ > 0) flush();
    return hash_.value();
  }

private:
  void flush() {
    std::memset(line_ + filled_, 0, sizeof line_ - filled_);
    hash_.add(line_, 1);
    filled_ = 0;
  }

  LineHash hash_;
  std::byte line_[LineHash::kLine] = {};
  size_t filled_ = 0;
};

Error damaged(std::string message) {
  return {.code = Code::BadPackage,
          .message = std::move(message),
          .where = {},
          .hint = "write it again with `aglow compile --emit package`"};
}

Error unreadable(const char* what) {
  return {.code = Code::FileRead, .message = fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

}  // namespace

struct PackageFile::Header {
  char magic[8] = {'a', 'g', 'l', 'o', 'w', 'p', 'k', 'g'};
  uint32_t format = kFormat;
  uint32_t sections = 0;
  uint64_t bytes = 0;  // of the file
  uint64_t hash = 0;   // of header and table, with 0 in its place
  char version[32] = {};

  void setVersion(const std::string& text) { std::memcpy(version, text.data(), std::min(text.size(), sizeof version)); }
  std::string_view versionText() const { return {version, ::strnlen(version, sizeof version)}; }

  uint64_t hashWith(std::span<const Row> rows) const {
    Header plain = *this;
    plain.hash = 0;
    return hashBytes(rows.data(), rows.size_bytes(), hashBytes(&plain, sizeof plain));
  }
};

PackageBytes::PackageBytes(std::span<const PackagePart> parts) {
  using Row = PackageFile::Row;
  static constexpr std::byte kZeros[kPage] = {};
  PackageFile::Header header{.sections = static_cast<uint32_t>(parts.size())};
  AGLOW_CHECK(parts.size() <= kMostSections, "a package has too many sections");
  std::vector<Row> rows;
  pieces_.emplace_back();
  uint64_t end = sizeof header + parts.size() * sizeof(Row);
  for (const PackagePart& part : parts) {
    const uint64_t offset = pageAfter(end);
    pieces_.emplace_back(kZeros, offset - end);
    Row& row = rows.emplace_back(
        Row{.section = static_cast<uint32_t>(part.section), .variant = part.variant, .offset = offset});
    SectionHash hash;
    for (const std::span<const std::byte> piece : part.pieces) {
      pieces_.push_back(piece);
      hash.add(piece);
      row.bytes += piece.size();
    }
    row.hash = hash.value();
    end = offset + row.bytes;
  }
  header.setVersion(packageVersion());
  header.bytes = pageAfter(end);
  pieces_.emplace_back(kZeros, header.bytes - end);
  header.hash = header.hashWith(rows);
  front_.assign(reinterpret_cast<const char*>(&header), sizeof header);
  front_.append(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(Row));
  pieces_.front() = std::as_bytes(std::span(front_));
}

Result<std::shared_ptr<const PackageFile>> PackageFile::open(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return unreadable("cannot open").at(path);
  auto package = of(file);
  if (!package.ok()) return std::move(package).error().at(path);
  return package;
}

Result<std::shared_ptr<const PackageFile>> PackageFile::of(const FileDescriptor& file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return unreadable("cannot examine");
  if (!S_ISREG(info.st_mode)) return Error{.code = Code::FileRead, .message = "expected a regular file"};
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (bytes < sizeof(Header)) return damaged("the file ends before its header does");
  void* base = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (base == MAP_FAILED) return unreadable("cannot map");
  std::shared_ptr<PackageFile> package(new PackageFile(static_cast<std::byte*>(base), bytes));
  AGLOW_OK(package->readTable());
  return std::shared_ptr<const PackageFile>(std::move(package));
}

PackageFile::~PackageFile() { ::munmap(base_, bytes_); }

Status PackageFile::readTable() {
  Header header, own;
  std::memcpy(&header, base_, sizeof header);
  if (std::memcmp(header.magic, own.magic, sizeof header.magic) != 0)
    return damaged("expected a package, which starts with 'aglowpkg'");
  const auto otherVersion = [&](const std::string& got) {
    return Error{.code = Code::OtherPackage,
                 .message = fmt::format("the package was written by another version: {}; this is {}, format {}", got,
                                        packageVersion(), kFormat),
                 .where = {},
                 .hint = "write it again with `aglow compile --emit package`"};
  };
  if (header.format != kFormat) return otherVersion(fmt::format("format {}", header.format));
  if (header.sections > kMostSections || header.sections * sizeof(Row) > bytes_ - sizeof header)
    return damaged("the table reaches past the end of the file");
  rows_.resize(header.sections);
  if (!rows_.empty()) std::memcpy(rows_.data(), base_ + sizeof header, rows_.size() * sizeof(Row));
  if (header.hash != header.hashWith(rows_)) return damaged("the table has other bytes than it was written with");
  if (!isOwn(header.versionText())) return otherVersion(shown(header.versionText()));
  if (header.bytes != bytes_) return damaged(fmt::format("expected a file of {} bytes, got {}", header.bytes, bytes_));
  uint64_t end = sizeof header + rows_.size() * sizeof(Row);
  for (const Row& row : rows_) {
    if (row.offset % kPage != 0 || row.offset < end || row.offset > bytes_ || row.bytes > bytes_ - row.offset)
      return damaged("a section lies outside of the file, or over another");
    end = row.offset + row.bytes;
    variants_ = std::max(variants_, row.variant);
  }
  return {};
}

Result<std::span<std::byte>> PackageFile::find(PackageSection section, uint32_t variant, Check check) const {
  for (const Row& row : rows_) {
    if (row.section != static_cast<uint32_t>(section) || row.variant != variant) continue;
    const std::span<std::byte> bytes(base_ + row.offset, row.bytes);
    if (check == Check::Bytes) {
      SectionHash hash;
      hash.add(bytes);
      if (hash.value() != row.hash)
        return damaged(fmt::format("section {} has other bytes than it was written with", row.section));
    }
    return bytes;
  }
  return damaged(fmt::format("section {} is missing", static_cast<uint32_t>(section)));
}

}  // namespace aglow
