#include "backends/device/kept.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>

#include "support/sha256.h"

namespace aglow::device {

namespace {

constexpr size_t kDigestBytes = 64;  // in front of the bytes, as digits
// Far more than any driver makes of a model's kernels: a file that is larger is damaged, and is not read.
constexpr size_t kMostBytes = size_t{256} << 20;

std::string digestOf(std::string_view bytes) { return hexadecimal(sha256(bytes)); }

}  // namespace

Kept::Kept(std::string folder, const char* ending, std::string_view identity, std::string_view madeFrom)
    : cache_(std::move(folder)), name_(digestOf(fmt::format("{}\n{}{}", AGLOW_VERSION, identity, madeFrom)) + ending) {}

std::optional<std::string> Kept::find() const {
  const FileDescriptor file = cache_.open(name_);
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return std::nullopt;
  const auto size = static_cast<uint64_t>(info.st_size);
  std::string bytes(size <= kMostBytes ? size : 0, '\0');
  if (bytes.size() >= kDigestBytes && readAt(file, 0, std::as_writable_bytes(std::span(bytes))).ok()) {
    std::string content = bytes.substr(kDigestBytes);
    if (digestOf(content) == std::string_view(bytes).substr(0, kDigestBytes)) return content;
  }
  remove();
  return std::nullopt;
}

void Kept::keep(std::string_view bytes) const {
  if (bytes.size() > kMostBytes - kDigestBytes) return;
  const std::string digest = digestOf(bytes);
  const std::array pieces = {std::as_bytes(std::span(digest)), std::as_bytes(std::span(bytes))};
  if (cache_.keep(name_, pieces)) cache_.evict();
}

std::optional<MachinePeak> Kept::peak() const {
  const std::optional<std::string> text = find();
  if (!text) return std::nullopt;
  char* end = nullptr;
  MachinePeak peak;
  peak.flops = std::strtod(text->c_str(), &end);
  peak.bytesPerSecond = std::strtod(end, &end);
  if (peak.flops <= 0 || peak.bytesPerSecond <= 0) return std::nullopt;
  return peak;
}

void Kept::keep(const MachinePeak& peak) const {
  keep(fmt::format("{:.6e} {:.6e}\n", peak.flops, peak.bytesPerSecond));
}

}  // namespace aglow::device
