#include "support/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "support/block_hash.h"
#include "support/hash.h"
#include "support/thread_pool.h"

namespace aglow {

namespace {

// What is read ahead of a question: names and sizes lie together, and a call of the system for each would take long.
constexpr size_t kBlock = size_t{16} << 10;

Error fault(const std::string& what, int number = errno) {
  return Error{Code::FileRead, what + ": " + std::generic_category().message(number)};
}

const char* kindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error changed() {
  return Error{Code::FileRead, "the file has changed since it was opened"}.withHint(
      "write a new file and rename it: programs that have the old one open keep it");
}

// Whole lines, but for the last bytes of all.
void add(LineHash& hash, std::span<const std::byte> bytes) {
  const size_t whole = bytes.size() / LineHash::kLine * LineHash::kLine;
  hash.add(bytes.data(), static_cast<int64_t>(whole / LineHash::kLine));
  if (whole == bytes.size()) return;
  std::byte line[LineHash::kLine] = {};
  std::memcpy(line, bytes.data() + whole, bytes.size() - whole);
  hash.add(line, 1);
}

}  // namespace

bool FileDescriptor::close() { return !valid() || ::close(std::exchange(fd_, -1)) == 0; }

Status readAt(const FileDescriptor& file, uint64_t offset, std::span<std::byte> to) {
  for (std::span<std::byte> rest = to; !rest.empty();) {
    const ssize_t got =
        ::pread(file.get(), rest.data(), rest.size(), static_cast<off_t>(offset + (to.size() - rest.size())));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fault("cannot read");
    if (got == 0) return changed();
    rest = rest.subspan(static_cast<size_t>(got));
  }
  return {};
}

// ---------------------------------------------------------------- files

Result<InputFile::Stamp> InputFile::stampOf(const FileDescriptor& file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fault("cannot examine");
  if (!S_ISREG(info.st_mode))
    return Error{Code::FileRead, std::string("expected a regular file, got ") + kindOf(info.st_mode)};
  return Stamp{.device = info.st_dev,
               .number = info.st_ino,
               .size = static_cast<uint64_t>(info.st_size),
               .seconds = info.st_mtim.tv_sec,
               .nanoseconds = info.st_mtim.tv_nsec};
}

Result<std::shared_ptr<const InputFile>> InputFile::of(FileDescriptor file) {
  AGLOW_TRY(const Stamp stamp, stampOf(file));
  return std::shared_ptr<const InputFile>(new InputFile(std::move(file), stamp));
}

Result<std::shared_ptr<const InputFile>> InputFile::open(const std::string& path) {
  // Without O_NONBLOCK a pipe would keep open() waiting for a writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fault("cannot open").at(path);
  auto opened = of(std::move(file));
  if (!opened.ok()) return std::move(opened).error().at(path);
  return opened;
}

Status InputFile::read(uint64_t offset, std::span<std::byte> to) const {
  // Pieces are hashed while the processor still has them. Those of large tensors are read side by side: most of the
  // time the system makes memory for them.
  constexpr size_t kPiece = size_t{256} << 10;
  std::vector<uint64_t> hashes((to.size() + kPiece - 1) / kPiece);
  std::vector<Status> statuses(hashes.size());
  const auto readPieces = [&](int, int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const std::span<std::byte> piece = to.subspan(i * kPiece, std::min(kPiece, to.size() - i * kPiece));
      statuses[i] = readAt(file_, offset + i * kPiece, piece);
      LineHash hash;
      if (statuses[i].ok()) add(hash, piece);
      hashes[i] = hash.value();
    }
    return 0;
  };
  if (hashes.size() > 1)
    ThreadPool::ofProcess(1)->run({.units = static_cast<int64_t>(hashes.size())}, readPieces);
  else
    readPieces(0, 0, static_cast<int64_t>(hashes.size()));
  for (Status& status : statuses) AGLOW_OK(std::move(status));
  const uint64_t hash = hashBytes(hashes.data(), hashes.size() * sizeof(uint64_t));
  AGLOW_TRY(const Stamp now, stampOf(file_));
  if (now != stamp_) return changed();
  // A writer may set the time back.
  const std::lock_guard lock(mutex_);
  if (hashes_.try_emplace({offset, to.size()}, hash).first->second != hash) return changed();
  return {};
}

// ---------------------------------------------------------------- bytes

FileBytes::FileBytes(std::shared_ptr<const InputFile> file)
    : file_(std::move(file)), loaded_((file_->size() + kBlock - 1) / kBlock) {}

FileBytes::~FileBytes() {
  if (base_ != nullptr) ::munmap(base_, file_->size());
}

Result<std::shared_ptr<const FileBytes>> FileBytes::create(std::shared_ptr<const InputFile> file) {
  std::shared_ptr<FileBytes> bytes(new FileBytes(std::move(file)));
  if (const uint64_t size = bytes->file_->size(); size > 0) {
    // Addresses alone; memory comes with the blocks that are read.
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
      return Error{Code::OutOfMemory, "there are no addresses for the file's " + std::to_string(size) + " bytes"};
    bytes->base_ = static_cast<std::byte*>(base);
  }
  return std::shared_ptr<const FileBytes>(std::move(bytes));
}

Status FileBytes::load(std::span<const std::byte> part) const {
  if (part.empty()) return {};
  const auto begin = static_cast<size_t>(part.data() - base_);
  const std::lock_guard lock(mutex_);
  for (size_t block = begin / kBlock; block <= (begin + part.size() - 1) / kBlock;) {
    size_t end = block;
    while (end <= (begin + part.size() - 1) / kBlock && !loaded_[end]) ++end;
    if (end > block) {
      const size_t from = block * kBlock, to = std::min<size_t>(end * kBlock, file_->size());
      AGLOW_OK(file_->read(from, {base_ + from, to - from}));
      std::fill(loaded_.begin() + static_cast<ptrdiff_t>(block), loaded_.begin() + static_cast<ptrdiff_t>(end), true);
    }
    block = end + 1;
  }
  return {};
}

Status FileBytes::copy(std::span<const std::byte> part, std::byte* to) const {
  if (part.size() >= kBlock) return file_->read(static_cast<uint64_t>(part.data() - base_), {to, part.size()});
  AGLOW_OK(load(part));
  std::copy(part.begin(), part.end(), to);
  return {};
}

Status SharedBytes::copy(std::span<const std::byte> part, std::byte* to) const {
  if (file) return file->copy(part, to);
  std::copy(part.begin(), part.end(), to);
  return {};
}

Result<SharedBytes> openFile(const std::string& path) {
  AGLOW_TRY(std::shared_ptr<const InputFile> file, InputFile::open(path));
  auto bytes = FileBytes::create(std::move(file));
  if (!bytes.ok()) return std::move(bytes).error().at(path);
  return SharedBytes{.bytes = (*bytes)->bytes(), .owner = *bytes, .file = *bytes};
}

Result<SharedBytes> readFile(const std::string& path) {
  AGLOW_TRY(SharedBytes file, openFile(path));
  if (Status loaded = file.load(file.bytes); !loaded.ok()) return std::move(loaded).error().at(path);
  return file;
}

}  // namespace aglow
