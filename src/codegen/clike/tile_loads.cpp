#include "codegen/clike/tile_loads.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/sizes.h"

namespace aglow::codegen {

// Halves are multiplied four along k at a time, so that they move as many together.
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
  const bool alongK = side_.alongK;
  if (tile.halves && alongK != left)  // vectors would lie the wrong way
    lanes_ = 1;
  else if (side_.whole % 4 == 0)
    lanes_ = tile.halves && left && side_.whole % 8 == 0 ? 8 : 4;
  if (tile.halves && !(left && lanes_ > 1)) loads_ = 4;
  vector_ = vectorName(p.sizes.held, lanes_);
  if (!left && !p.ofColumn.empty()) columnsOfItem_ = std::max<int64_t>(lines_ / lanes_ / tile.items(), 1);
}

int64_t TileLoad::perItem() const { return ceilDiv(lines_ * tile_.depth, lanes_ * loads_ * tile_.items()); }

std::string TileLoad::places() const {
  // Neighbouring items move what lies side by side.
  const bool alongK = left_ && side_.alongK;
  const int64_t units = lines_ * tile_.depth / (lanes_ * loads_);
  const int64_t ofK = loads_ * (alongK && lanes_ > 1 ? lanes_ : 1), ofLine = alongK ? 1 : lanes_;
  const int64_t across = alongK ? tile_.depth / ofK : lines_ / ofLine;
  std::string text = fmt::format("const int32_t e = item + i * {};\n", tile_.items());
  if (units % tile_.items() != 0) text += fmt::format("if (e >= {}) break;\n", units);
  const std::string fast = fmt::format("e % {}", across), slow = fmt::format("e / {}", across);
  return text + fmt::format("const int32_t along = {} * {}, beside = {} * {};\n", alongK ? fast : slow, ofK,
                            alongK ? slow : fast, ofLine);
}

// Whether it lies in the matrix; a vector does with its first element.
std::string TileLoad::condition() const {
  std::string text;
  if (all_ % lines_ != 0) text = fmt::format("{} < {}", line_, all_);
  if (p_.sizes.k % tile_.depth != 0) text += fmt::format("{}k < {}", text.empty() ? "" : " && ", p_.sizes.k);
  return text.empty() ? "" : fmt::format("if ({}) ", text);
}

std::string TileLoad::declarations() const {
  std::string text = fmt::format("{} {}Next[{}][{}];\n", vector_, name_, perItem(), loads_);
  if (columnsOfItem_ == 0) return text;
  for (const auto& [name, value] : p_.ofColumn)
    text += fmt::format("{} {}Of[{}];\n", p_.columnType, name, columnsOfItem_);
  text += fmt::format(
      "#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\nconst {} column = side + (item + i * {}) % {} * {};\n",
      columnsOfItem_, writer_.indexType(), tile_.items(), lines_ / lanes_, lanes_);
  for (const auto& [name, value] : p_.ofColumn) text += fmt::format("{}Of[i] = {};\n", name, value);
  return text + "}\n";
}

std::string TileLoad::fetch() const {
  std::string text = fmt::format(
      "#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}#pragma unroll\nfor (int32_t j = 0; j < {}; ++j) {{\n",
      perItem(), places(), loads_);
  text += fmt::format("const {0} k = first + along + j, {1} = {2} + beside;\n{3} value = {4};\n{5}{{\n",
                      writer_.indexType(), line_, left_ ? "top" : "side", vector_,
                      lanes_ == 1 ? "0" : fmt::format("({})(0)", vector_), condition());
  if (columnsOfItem_ > 0)
    for (const auto& [name, value] : p_.ofColumn)
      text += fmt::format("const {0} {1} = {1}Of[i % {2}];\n", p_.columnType, name, columnsOfItem_);
  if (lanes_ > 1)
    text += fmt::format("value = *(GLOBAL const {}*)({} + {});\n", vector_, side_.pointer, side_.first);
  else
    text += fmt::format("{}{}\n", left_ ? "" : p_.atK, side_.element);
  return text + fmt::format("}}\n{}Next[i][j] = value;\n}}\n}}\n", name_);
}

std::string TileLoad::put() const {
  if (tile_.halves) return putHalves();
  const int64_t length = lines_ + 4;  // so that neighbours along k begin in different banks
  std::string text = fmt::format("#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}", perItem(), places());
  const auto place = [&](int64_t j) {
    return fmt::format("{}s[(at * {} + along + {}) * {} + beside]", name_, tile_.depth, j, length);
  };
  if (lanes_ == 1)
    text += fmt::format("{} = {}Next[i][0];\n", place(0), name_);
  else if (left_ && side_.alongK)
    for (int64_t j = 0; j < lanes_; ++j) text += fmt::format("{} = {}Next[i][0].s{};\n", place(j), name_, j);
  else
    text += fmt::format("*(LOCAL {}*)&{} = {}Next[i][0];\n", vector_, place(0), name_);
  return text + "}\n";
}

// The left matrix row by row, of the right one four along k side by side, column by column.
std::string TileLoad::putHalves() const {
  std::string text = fmt::format("#pragma unroll\nfor (int32_t i = 0; i < {}; ++i) {{\n{}", perItem(), places());
  const auto four = [&](const std::string& part) {
    std::string list;
    for (int64_t j = 0; j < loads_; ++j) list += fmt::format("{}{}Next[i][{}]{}", j == 0 ? "" : ", ", name_, j, part);
    return fmt::format("(ushort4)({})", list);
  };
  if (left_) {
    const int64_t together = lanes_ == 1 ? 4 : lanes_;
    text += fmt::format("*(LOCAL ushort{}*)(lefts + (at * {} + beside) * {} + along) = {};\n", together, lines_,
                        (tile_.depth + 16), lanes_ == 1 ? four("") : "leftNext[i][0]");
  } else {
    for (int64_t c = 0; c < lanes_; ++c)
      text += fmt::format("rights[(at * {} + along / 4) * {} + beside + {}] = as_uint2({});\n", tile_.depth / 4,
                          lines_ + 4, c, four(lanes_ == 1 ? "" : fmt::format(".s{}", c)));
  }
  return text + "}\n";
}

}  // namespace aglow::codegen
