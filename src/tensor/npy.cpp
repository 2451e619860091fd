// Reader and writer of .npy files. The header is a Python literal; only the three keys numpy writes are understood.
#include "tensor/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "support/sizes.h"
#include "support/utf8.h"
#include "tensor/npz.h"

namespace aglow {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = size_t{1} << 16;
constexpr size_t kMaxPrefix = 12;
constexpr size_t kMaxRank = 64;  // numpy's own limit
static_assert(Shape::kMaxRank <= kMaxRank, "every tensor can be written");

Error malformed(std::string message) { return Error{Code::BadNpy, std::move(message)}; }

struct Layout {
  std::string descr;
  Shape shape;
  bool fortran = false;
  int64_t elemBytes = 0;
  int64_t dataStart = 0;
};

// Reads the dictionary token by token; every step that fails leaves the parser failed.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  Status parse() {
    expect('{');
    while (ok_ && !take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = quoted();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        ok_ = false;
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skipSpace();
    if (!ok_ || !rest_.empty() || !descr || !fortran || !shape)
      return malformed("the header is not numpy's dictionary of 'descr', 'fortran_order' and 'shape'");
    return {};
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<int64_t>> shape;

private:
  void skipSpace() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }

  bool take(char c) {
    skipSpace();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) { ok_ = take(c) && ok_; }

  bool takeWord(std::string_view word) {
    skipSpace();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = rest_.find(quote);
    if (!ok_ || end == std::string_view::npos) {
      ok_ = false;
      return {};
    }
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    if (takeWord("True")) return true;
    ok_ = takeWord("False") && ok_;
    return false;
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> dims;
    expect('(');
    while (ok_ && !take(')')) {
      dims.push_back(integer());
      // One element needs its comma: "(3)" is not a tuple.
      const bool comma = take(',');
      if (!comma && dims.size() > 1) {
        expect(')');
        break;
      }
      ok_ = ok_ && comma;
    }
    ok_ = ok_ && dims.size() <= kMaxRank;
    return dims;
  }

  int64_t integer() {
    skipSpace();
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    ok_ = ok_ && fault == std::errc() && value >= 0;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

// "f4" of "<f4": what is left when the byte order is set apart.
std::string_view withoutOrder(std::string_view descr) { return descr.substr(std::min<size_t>(1, descr.size())); }

// "S5" has 5 bytes an element, "U5" 5 code points of 4 bytes.
std::optional<int64_t> stringBytes(std::string_view descr) {
  const std::string_view kind = withoutOrder(descr);
  if (!kind.starts_with('S') && !kind.starts_with('U')) return std::nullopt;
  int64_t width = 0;
  const char* end = kind.data() + kind.size();
  const auto [stop, fault] = std::from_chars(kind.data() + 1, end, width);
  constexpr int64_t kWidest = int64_t{1} << 31;
  if (fault != std::errc() || stop != end || width < 0 || width > kWidest) return std::nullopt;
  return kind.starts_with('U') ? width * 4 : width;
}

Result<int64_t> elementBytes(const std::string& descr) {
  if (const auto bytes = stringBytes(descr)) return *bytes;
  if (!descr.empty() && std::string_view("<>|").find(descr[0]) != std::string_view::npos)
    for (int i = 0; i < kElemKinds; ++i)
      if (const ElemInfo& info = elemInfo(static_cast<ElemKind>(i)); withoutOrder(info.npy) == withoutOrder(descr))
        if (descr[0] != '|' || info.bytes == 1) return int64_t{info.bytes};
  return malformed(fmt::format("elements of numpy's type '{}' are not supported", descr));
}

Result<Layout> parseLayout(const SharedBytes& whole) {
  const std::span<const std::byte> file = whole.bytes;
  AGLOW_OK(whole.load(file.first(std::min(file.size(), kMaxHeader + kMaxPrefix))));
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic) || text.size() < kMagic.size() + 2) return malformed("this is not a .npy file");
  const int major = static_cast<int>(file[6]);
  const int minor = static_cast<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0)
    return malformed(fmt::format("expected version 1.0, 2.0 or 3.0, got {}.{}", major, minor));
  const size_t lengthBytes = major == 1 ? 2 : 4;
  const size_t headerStart = kMagic.size() + 2 + lengthBytes;
  if (text.size() < headerStart) return malformed("the file ends inside of its header");
  uint32_t length = 0;
  std::memcpy(&length, file.data() + kMagic.size() + 2, lengthBytes);
  if (length > kMaxHeader)
    return malformed(fmt::format("a header of {} bytes, at most {} are accepted", length, kMaxHeader));
  if (length > text.size() - headerStart) return malformed("the file ends inside of its header");

  HeaderParser parser(text.substr(headerStart, length));
  AGLOW_OK(parser.parse());
  Layout layout;
  layout.descr = *parser.descr;
  layout.fortran = *parser.fortran;
  AGLOW_TRY(layout.elemBytes, elementBytes(layout.descr));
  Result<Shape> shape = Shape::create(*parser.shape);
  if (!shape.ok()) return malformed(shape.error().message);
  layout.shape = *std::move(shape);
  layout.dataStart = static_cast<int64_t>(headerStart + length);
  const int64_t got = static_cast<int64_t>(file.size()) - layout.dataStart;
  const std::optional<int64_t> expected = checkedMul(layout.shape.elements(), layout.elemBytes);
  // Elements without bytes would let a short file claim any number of them.
  if (!expected || (layout.elemBytes == 0 && layout.shape.elements() > 0))
    return malformed(fmt::format("shape {} of '{}' is impossible", layout.shape.text(), layout.descr));
  if (got != *expected)
    return malformed(fmt::format("expected {} bytes of data for shape {} of '{}', got {}", *expected,
                                 layout.shape.text(), layout.descr, got));
  return layout;
}

void reverseElements(std::byte* data, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) std::reverse(data + i * size, data + (i + 1) * size);
}

// Copies from Fortran order, in which the first axis is the fastest, to C order.
void copyFromFortran(const Layout& layout, const std::byte* from, std::byte* to) {
  const Shape& shape = layout.shape;
  const int rank = shape.rank();
  const auto size = static_cast<size_t>(layout.elemBytes);
  std::vector<int64_t> strides(static_cast<size_t>(rank));
  int64_t stride = layout.elemBytes;
  for (int axis = 0; axis < rank; ++axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= std::max<int64_t>(shape[axis], 1);
  }
  std::vector<int64_t> index(static_cast<size_t>(rank), 0);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    std::memcpy(to + i * layout.elemBytes, from, size);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<size_t>(axis);
      from += strides[at];
      if (++index[at] < shape[axis]) break;
      from -= strides[at] * shape[axis];
      index[at] = 0;
    }
  }
}

// Whether a byte is the storage of some element: narrow kinds use only a part of the 256 patterns.
bool validByte(const ElemInfo& info, std::byte byte) {
  const int limit = 1 << info.bits;
  const int value = std::to_integer<int>(byte);
  if (info.cls != ElemClass::Signed) return value < limit;
  const int asSigned = value < 128 ? value : value - 256;
  return asSigned >= -limit / 2 && asSigned < limit / 2;
}

Status checkPatterns(const ElemInfo& info, const std::byte* data, int64_t count) {
  if (info.bits >= 8) return {};
  const std::byte* end = data + count;
  const std::byte* bad = std::find_if(data, end, [&](std::byte byte) { return !validByte(info, byte); });
  if (bad == end) return {};
  return malformed(fmt::format("element {} has the bits 0x{:02x}, which no {} has", bad - data,
                               std::to_integer<int>(*bad), info.name));
}

Result<Tensor> readTensor(const SharedBytes& file, ElemKind expected) {
  AGLOW_TRY(const Layout layout, parseLayout(file));
  const ElemInfo& info = elemInfo(expected);
  if (withoutOrder(layout.descr) != withoutOrder(info.npy))
    return Error{Code::BadBinding, fmt::format("expected elements of type {}, in numpy '{}', got '{}'", info.name,
                                               info.npy, layout.descr)};
  Tensor tensor(Type(expected, layout.shape));
  const std::span<const std::byte> from = file.bytes.subspan(static_cast<size_t>(layout.dataStart));
  std::byte* to = tensor.mutableData();
  if (layout.fortran) {
    AGLOW_OK(file.load(from));
    copyFromFortran(layout, from.data(), to);
  } else {
    AGLOW_OK(file.copy(from, to));
  }
  if (layout.descr[0] == '>') reverseElements(to, layout.shape.elements(), layout.elemBytes);
  AGLOW_OK(checkPatterns(info, to, layout.shape.elements()));
  return tensor;
}

// numpy fills short strings up with zeros, so those at the end do not count.
Result<std::string> stringOf(const Layout& layout, const std::byte* data) {
  if (withoutOrder(layout.descr).starts_with('S')) {
    std::string text(reinterpret_cast<const char*>(data), static_cast<size_t>(layout.elemBytes));
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }
  std::vector<uint32_t> points(static_cast<size_t>(layout.elemBytes) / sizeof(uint32_t));
  std::memcpy(points.data(), data, static_cast<size_t>(layout.elemBytes));
  while (!points.empty() && points.back() == 0) points.pop_back();
  std::string text;
  for (uint32_t point : points) {
    if (layout.descr[0] == '>') point = __builtin_bswap32(point);
    if (point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return malformed(fmt::format("a string holds 0x{:x}, which is not a character", point));
    appendUtf8(text, point);
  }
  return text;
}

Result<StringTensor> readStrings(const SharedBytes& file) {
  AGLOW_TRY(const Layout layout, parseLayout(file));
  if (!stringBytes(layout.descr))
    return Error{Code::BadBinding, fmt::format("expected strings, in numpy '|S' or '<U', got '{}'", layout.descr)};
  AGLOW_OK(file.load(file.bytes));
  const std::byte* data = file.bytes.data() + layout.dataStart;
  std::vector<std::byte> turned;
  if (layout.fortran) {
    turned.resize(file.bytes.size() - static_cast<size_t>(layout.dataStart));
    copyFromFortran(layout, data, turned.data());
    data = turned.data();
  }
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(layout.shape.elements()));
  for (int64_t i = 0; i < layout.shape.elements(); ++i) {
    AGLOW_TRY(std::string text, stringOf(layout, data + i * layout.elemBytes));
    strings.push_back(std::move(text));
  }
  return StringTensor(layout.shape, std::move(strings));
}

// Version 1.0, up to the data.
std::string headerOf(std::string_view descr, const Shape& shape) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                   fmt::join(shape.dims(), ", "), shape.rank() == 1 ? "," : "");
  // The data begin at a multiple of 64, as numpy's own files do; the newline is the header's last character.
  constexpr size_t kPrefix = 10;
  const auto total = static_cast<size_t>(alignUp(static_cast<int64_t>(kPrefix + header.size() + 1), 64));
  header.resize(total - kPrefix - 1, ' ');
  header += '\n';
  std::string prefix(kMagic);
  prefix += {'\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  return prefix + header;
}

template <class T>
Result<T> at(Result<T> result, const std::string& path) {
  if (result.ok()) return result;
  return std::move(result).error().at(path);
}

}  // namespace

Result<NpyHeader> readNpyHeader(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, openNpy(path));
  AGLOW_TRY(Layout layout, at(parseLayout(file), path));
  return NpyHeader{std::move(layout.descr), std::move(layout.shape)};
}

std::optional<ElemKind> elemKindByNpy(std::string_view descr) {
  // Those that numpy has itself; the types of others' raw bits are among them.
  constexpr ElemKind kKinds[] = {ElemKind::Float32, ElemKind::Float64, ElemKind::Float16, ElemKind::Int8,
                                 ElemKind::Int16,   ElemKind::Int32,   ElemKind::Int64,   ElemKind::UInt8,
                                 ElemKind::UInt16,  ElemKind::UInt32,  ElemKind::UInt64,  ElemKind::Bool};
  for (const ElemKind kind : kKinds)
    if (withoutOrder(elemInfo(kind).npy) == withoutOrder(descr)) return kind;
  return std::nullopt;
}

Result<Tensor> readNpy(const std::string& path, ElemKind expected) {
  AGLOW_TRY(const SharedBytes file, openNpy(path));
  return at(readTensor(file, expected), path);
}

Result<StringTensor> readNpyStrings(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, openNpy(path));
  return at(readStrings(file), path);
}

Status addNpy(FileSet& files, const std::string& path, const Tensor& tensor) {
  AGLOW_CHECK(!tensor.empty(), "an empty tensor cannot be written");
  const std::string header = headerOf(elemInfo(tensor.type().kind()).npy, tensor.type().shape());
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(header)),
                                               {tensor.data(), static_cast<size_t>(tensor.bytes())}};
  return files.add(path, pieces);
}

Result<std::string> npyBytes(const Tensor& tensor) {
  std::string bytes = headerOf(elemInfo(tensor.type().kind()).npy, tensor.type().shape());
  bytes.append(reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  return bytes;
}

Result<std::string> npyBytes(const StringTensor& tensor) {
  size_t width = 1;
  for (const std::string& text : tensor.strings()) width = std::max(width, text.size());
  // All are as long as the longest one in the file.
  constexpr int64_t kMost = int64_t{1} << 32;
  const std::optional<int64_t> count = checkedMul(tensor.shape().elements(), static_cast<int64_t>(width));
  if (!count || *count > kMost)
    return Error{Code::TooLarge, fmt::format("{} strings of up to {} bytes are too much for one .npy file",
                                             tensor.shape().elements(), width)};
  std::string bytes = headerOf(fmt::format("|S{}", width), tensor.shape());
  const size_t begin = bytes.size();
  bytes.resize(begin + static_cast<size_t>(*count), '\0');
  for (size_t i = 0; i < tensor.strings().size(); ++i)
    tensor.strings()[i].copy(bytes.data() + begin + i * width, width);
  return bytes;
}

Status addNpy(FileSet& files, const std::string& path, const StringTensor& tensor) {
  AGLOW_TRY(const std::string bytes, at(npyBytes(tensor), path));
  return files.add(path, bytes);
}

Status writeNpy(const std::string& path, const Tensor& tensor) {
  return writeTogether([&](FileSet& files) { return addNpy(files, path, tensor); });
}

Status writeNpy(const std::string& path, const StringTensor& tensor) {
  return writeTogether([&](FileSet& files) { return addNpy(files, path, tensor); });
}

}  // namespace aglow
