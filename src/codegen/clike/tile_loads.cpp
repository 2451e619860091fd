#include "codegen/clike/tile_loads.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/sizes.h"

namespace aglow::codegen {

std::string Side::loaded(const ProductSizes& sizes) const {
  return loaded(sizes, fmt::format("{}[{}]", pointer, number));
}

std::string Side::loaded(const ProductSizes& sizes, const std::string& stored) const {
  const std::string value = kind == sizes.held ? loadedText(kind, stored) : elementText(kind, sizes.sums, stored);
  return offset == 0 ? value : fmt::format("{} - {}", value, offset);
}

std::string Side::element(const ProductSizes& sizes) const {
  std::string text = fmt::format("{}value = {};\n", before, loaded(sizes));
  if (!inside.empty()) text += fmt::format("value = {} ? value : {};\n", inside, zeroText(sizes.sums));
  return text;
}

TileLoad::TileLoad(const KernelWriter& writer, const Product& p, const GroupTile& tile, bool left)
    : writer_(writer),
      p_(p),
      tile_(tile),
      side_(left ? p.left : p.right),
      left_(left),
      name_(left ? "left" : "right"),
      line_(left ? "row" : "column"),
      lines_(left ? tile.rows : tile.columns),
      all_(left ? p.sizes.m : p.sizes.n) {
  constexpr int64_t kMostBytes = 16, kLeastBytes = 4;  // of one copy
  const int64_t bytes = elemBytes(p.sizes.held);
  const bool copies = writer.shape().copiesAhead && side_.kind == p.sizes.held;
  // Vectors that lie across the lines of local memory are torn apart, which only registers can do.
  const bool across = side_.alongK != keepsLines();
  if (!across || (!copies && !tile.halves)) lanes_ = std::min(side_.whole, kMostBytes / bytes);
  ahead_ = copies && bytes * lanes_ >= kLeastBytes;
  vector_ = vectorName(p.sizes.held, lanes_);
  if (!side_.ofLine.empty())
    linesOfItem_ = side_.alongK ? perItem() : std::max<int64_t>(lines_ / lanes_ / tile.items(), 1);
}

int64_t TileLoad::perItem() const { return ceilDiv(lines_ * tile_.depth, lanes_ * tile_.items()); }

std::string TileLoad::places() const {
  // Neighbouring items move what lies side by side.
  const int64_t units = lines_ * tile_.depth / lanes_;
  const int64_t ofK = side_.alongK ? lanes_ : 1, ofLine = side_.alongK ? 1 : lanes_;
  const int64_t across = side_.alongK ? tile_.depth / ofK : lines_ / ofLine;
  std::string text = fmt::format("const int32_t e = item + i * {};\n", tile_.items());
  if (units % tile_.items() != 0) text += fmt::format("if (e >= {}) break;\n", units);
  const std::string fast = fmt::format("e % {}", across), slow = fmt::format("e / {}", across);
  return text + fmt::format("const int32_t along = {} * {}, beside = {} * {};\n", side_.alongK ? fast : slow, ofK,
                            side_.alongK ? slow : fast, ofLine);
}

// A vector lies in the matrix with its first element.
std::string TileLoad::matrixPlaces() const {
  std::string text = fmt::format("{}const {} k = first + along, {} = {} + beside;\n", places(), writer_.indexType(),
                                 line_, left_ ? "top" : "side");
  for (const auto& [name, value] : side_.ofLine)
    text += fmt::format("const {0} {1} = {1}Of[i % {2}];\n", side_.lineType, name, linesOfItem_);
  text += side_.atK;
  std::string there = side_.inside.empty() ? "true" : side_.inside;
  if (all_ % lines_ != 0) there += fmt::format(" && {} < {}", line_, all_);
  if (p_.sizes.k == 0 || p_.sizes.k % tile_.depth != 0) there += fmt::format(" && k < {}", p_.sizes.k);
  return text + fmt::format("{}const bool there = {};\n", side_.before, there);
}

std::string TileLoad::place(int64_t on) const {
  if (keepsLines())
    return fmt::format("{}s[(at * {} + beside) * {} + along + {}]", name_, lines_,
                       left_ ? tile_.leftLength() : tile_.rightLength(), on);
  return fmt::format("{}s[(at * {} + along + {}) * {} + beside]", name_, tile_.depth, on,
                     left_ ? tile_.leftLength() : tile_.rightLength());
}

std::string TileLoad::declarations() const {
  std::string text;
  if (!ahead_) text = fmt::format("{} {}Next[{}];\n", vector_, name_, perItem());
  if (side_.ofLine.empty()) return text;
  for (const auto& [name, value] : side_.ofLine)
    text += fmt::format("{} {}Of[{}];\n", side_.lineType, name, linesOfItem_);
  // As `places` has them.
  const std::string beside = side_.alongK
                                 ? fmt::format("(item + i * {}) / {}", tile_.items(), kLanes())
                                 : fmt::format("(item + i * {}) % {} * {}", tile_.items(), lines_ / lanes_, lanes_);
  text += fmt::format("#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\nconst {} {} = {} + {};\n", linesOfItem_,
                      writer_.indexType(), line_, left_ ? "top" : "side", beside);
  for (const auto& [name, value] : side_.ofLine) text += fmt::format("{}Of[i] = {};\n", name, value);
  return text + "}\n";
}

// Vectors that are stored in another kind than tiles hold become so lane by lane.
std::string TileLoad::loadedVector() const {
  const std::string from = vectorName(side_.kind, lanes_);
  std::string text = fmt::format("*(GLOBAL const {}*)({} + {})", from, side_.pointer, side_.number);
  if (side_.kind == p_.sizes.held) return fmt::format("value = {};", text);
  text = fmt::format("const {} stored = {};\nvalue = VECTOR{}({}", from, text, lanes_, vector_);
  for (int64_t j = 0; j < lanes_; ++j)
    text += ", " + side_.loaded(p_.sizes, fmt::format("(({})stored.s{})", storedName(side_.kind), j));
  return text + ");";
}

// A load by itself under the condition: whatever else stood there would wait for it.
std::string TileLoad::fetch() const {
  if (ahead_) return {};
  return fmt::format(
      "#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}{} value = {};\nif (there) {{ {} }}\n{}Next[i] = "
      "value;\n}}\n",
      perItem(), matrixPlaces(), vector_, lanes_ == 1 ? "0" : fmt::format("({})(0)", vector_),
      lanes_ == 1 ? fmt::format("value = {};", side_.loaded(p_.sizes)) : loadedVector(), name_);
}

std::string TileLoad::put() const {
  if (ahead_) return {};
  std::string text = fmt::format("#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}", perItem(), places());
  if (lanes_ == 1)
    text += fmt::format("{} = {}Next[i];\n", place(), name_);
  else if (side_.alongK && !keepsLines())
    for (int64_t j = 0; j < lanes_; ++j) text += fmt::format("{} = {}Next[i].s{};\n", place(j), name_, j);
  else
    text += fmt::format("*(LOCAL {}*)&{} = {}Next[i];\n", vector_, place(), name_);
  return text + "}\n";
}

std::string TileLoad::copy() const {
  if (!ahead_) return {};
  return fmt::format(
      "#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}COPY_AHEAD_{}(&{}, {} + (there ? {} : 0), there);\n}}\n",
      perItem(), matrixPlaces(), elemBytes(p_.sizes.held) * lanes_, place(), side_.pointer, side_.number);
}

}  // namespace aglow::codegen
