// Archives in the form of zip, with members as they are: what np.savez writes.
#include <array>
#include <cstdint>

#include "tensor/npz.h"

namespace aglow {

namespace {

constexpr std::array<uint32_t, 256> kRemainders = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}();

uint32_t crc32(std::string_view bytes) {
  uint32_t value = 0xffffffffu;
  for (const char byte : bytes) value = kRemainders[(value ^ static_cast<uint8_t>(byte)) & 0xff] ^ (value >> 8);
  return ~value;
}

void add(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

// What the local header and the entry of the directory have in common.
void addFacts(std::string& out, uint32_t sum, size_t size, size_t name) {
  constexpr uint64_t kVersion = 20, kNameIsUtf8 = 0x800, kFirstDay = 0x21;
  add(out, kVersion, 2);
  add(out, kNameIsUtf8, 2);
  add(out, 0, 4);  // stored as it is, at midnight
  add(out, kFirstDay, 2);
  add(out, sum, 4);
  add(out, size, 4);
  add(out, size, 4);
  add(out, name, 2);
  add(out, 0, 2);
}

}  // namespace

Result<std::string> npzBytes(const NamedArrays& arrays) {
  constexpr uint64_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50, kMost = 0xfffffffe;
  std::string out, directory;
  for (const auto& [name, bytes] : arrays) {
    const std::string file = name + ".npy";
    const uint64_t at = out.size();
    const uint32_t sum = crc32(bytes);
    add(out, kLocal, 4);
    addFacts(out, sum, bytes.size(), file.size());
    out += file;
    out += bytes;
    add(directory, kEntry, 4);
    add(directory, 20, 2);
    addFacts(directory, sum, bytes.size(), file.size());
    directory.append(2 + 2 + 2 + 4, '\0');  // no comment, the first disk, nothing said of the file
    add(directory, at, 4);
    directory += file;
  }
  const uint64_t begin = out.size(), count = arrays.size();
  if (begin + directory.size() > kMost || count >= 0xffff)
    return Error{.code = Code::TooLarge, .message = "an .npz file holds up to 4 GiB"};
  out += directory;
  add(out, kEnd, 4);
  add(out, 0, 4);
  add(out, count, 2);
  add(out, count, 2);
  add(out, directory.size(), 4);
  add(out, begin, 4);
  add(out, 0, 2);
  return out;
}

}  // namespace aglow
