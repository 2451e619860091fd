// Archives in the form of zip: a directory at the end says where each file lies.
#include "tensor/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "support/suggest.h"

namespace aglow {

namespace {

constexpr std::string_view kEnding = ".npz", kSeparator = ".npz:";

Error malformed(std::string message, std::string hint = {}) {
  return {.code = Code::BadNpy,
          .message = "this is no .npz file: " + std::move(message),
          .where = {},
          .hint = std::move(hint)};
}

// Little-endian numbers at places that are checked.
class Bytes {
public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t size() const { return bytes_.size(); }
  bool has(uint64_t at, uint64_t count) const { return at <= size() && count <= size() - at; }
  uint64_t number(uint64_t at, int count) const {
    uint64_t value = 0;
    for (int i = count; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes_[at + static_cast<uint64_t>(i)]);
    return value;
  }
  std::string text(uint64_t at, uint64_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, static_cast<size_t>(count)};
  }
  std::span<const std::byte> part(uint64_t at, uint64_t count) const { return bytes_.subspan(at, count); }

private:
  std::span<const std::byte> bytes_;
};

struct Member {
  std::string name;  // without .npy
  uint64_t begin = 0, size = 0;
};

// A local header lies before the bytes of each file; names and extra fields are as long as it says.
Result<uint64_t> dataAfter(const Bytes& file, uint64_t header) {
  constexpr uint64_t kLength = 30, kMagic = 0x04034b50;
  if (!file.has(header, kLength) || file.number(header, 4) != kMagic) return malformed("a header is missing");
  return header + kLength + file.number(header + 26, 2) + file.number(header + 28, 2);
}

Result<Member> memberAt(const Bytes& file, uint64_t at) {
  const uint64_t method = file.number(at + 10, 2), packed = file.number(at + 20, 4), size = file.number(at + 24, 4);
  Member member{.name = file.text(at + 46, file.number(at + 28, 2))};
  if (method != 0)
    return malformed(fmt::format("'{}' is compressed", member.name), "np.savez writes arrays as they are");
  constexpr uint64_t kElsewhere = 0xffffffff;  // in a field for sizes of 64 bits
  if (packed == kElsewhere || packed != size) return malformed(fmt::format("'{}' is too large", member.name));
  AGLOW_TRY(member.begin, dataAfter(file, file.number(at + 42, 4)));
  member.size = size;
  if (!file.has(member.begin, size)) return malformed("it ends too early");
  if (member.name.ends_with(".npy")) member.name.resize(member.name.size() - 4);
  return member;
}

Result<std::vector<Member>> membersOf(const Bytes& file) {
  constexpr uint64_t kEnd = 22, kEndMagic = 0x06054b50, kEntry = 46, kEntryMagic = 0x02014b50, kComment = 0xffff;
  if (!file.has(0, kEnd)) return malformed("it is too short");
  uint64_t end = file.size() - kEnd;
  const uint64_t last = end > kComment ? end - kComment : 0;
  while (file.number(end, 4) != kEndMagic) {
    if (end == last) return malformed("it has no directory, or ends too early");
    --end;
  }
  uint64_t at = file.number(end + 16, 4);
  std::vector<Member> members;
  for (uint64_t left = file.number(end + 10, 2); left > 0; --left) {
    if (!file.has(at, kEntry) || file.number(at, 4) != kEntryMagic) return malformed("its directory is damaged");
    const uint64_t length = kEntry + file.number(at + 28, 2) + file.number(at + 30, 2) + file.number(at + 32, 2);
    if (!file.has(at, length)) return malformed("its directory is damaged");
    AGLOW_TRY(Member member, memberAt(file, at));
    members.push_back(std::move(member));
    at += length;
  }
  return members;
}

}  // namespace

Result<std::vector<std::string>> npzNames(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  auto members = membersOf(Bytes(file.bytes));
  if (!members.ok()) return std::move(members).error().at(path);
  std::vector<std::string> names;
  for (const Member& member : *members) names.push_back(member.name);
  return names;
}

Result<SharedBytes> openNpy(const std::string& path) {
  const size_t at = path.rfind(kSeparator);
  if (at == std::string::npos) return openFile(path);
  const std::string archive = path.substr(0, at + kEnding.size()), name = path.substr(at + kSeparator.size());
  AGLOW_TRY(const SharedBytes file, readFile(archive));
  auto members = membersOf(Bytes(file.bytes));
  if (!members.ok()) return std::move(members).error().at(archive);
  std::vector<std::string_view> names;
  for (const Member& member : *members) {
    if (member.name == name)
      return SharedBytes{.bytes = Bytes(file.bytes).part(member.begin, member.size), .owner = file.owner};
    names.push_back(member.name);
  }
  std::string hint = didYouMean(name, names);
  if (hint.empty()) hint = fmt::format("it holds: {}", fmt::join(names, ", "));
  return Error{.code = Code::BadBinding,
               .message = fmt::format("the file holds no array '{}'", name),
               .where = archive,
               .hint = std::move(hint)};
}

}  // namespace aglow
