#include "backends/cpu/code/constant_pool.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/code/memory_map.h"
#include "support/block_hash.h"
#include "support/hash.h"

namespace aglow::codegen {

namespace {

constexpr std::byte kPadding[Tensor::kAlignment] = {};

}  // namespace

int64_t ConstantPool::place(const Tensor& value) {
  const auto size = static_cast<size_t>(value.bytes());
  const uint64_t hash = hashBytes(value.data(), size);
  const auto [begin, end] = byHash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Piece& known = pieces_[it->second];
    if (known.value.bytes() == value.bytes() && std::memcmp(known.value.data(), value.data(), size) == 0)
      return known.offset;
  }
  const int64_t offset = end_;
  byHash_.emplace(hash, pieces_.size());
  pieces_.push_back({value, offset});
  end_ += aligned(value.bytes());
  return offset;
}

void ConstantPool::seal(uint64_t layout) {
  const uint64_t words[] = {hash(), layout};
  Tensor line(Type(ElemKind::UInt8, {Tensor::kAlignment}));
  std::memcpy(line.mutableData(), words, sizeof words);
  pieces_.push_back({line, bytes()});
  end_ = bytes() + Tensor::kAlignment;
  sealed_ = true;
}

int64_t ConstantPool::bytes() const { return std::max(end_, Tensor::kAlignment); }

uint64_t ConstantPool::hash() const {
  LineHash hash;
  for (const Piece& piece : std::span(pieces_).first(pieces_.size() - (sealed_ ? 1 : 0))) {
    const int64_t whole = piece.value.bytes() / LineHash::kLine;
    const int64_t rest = piece.value.bytes() % LineHash::kLine;
    hash.add(piece.value.data(), whole);
    if (rest == 0) continue;
    std::byte line[LineHash::kLine] = {};
    std::memcpy(line, piece.value.data() + whole * LineHash::kLine, static_cast<size_t>(rest));
    hash.add(line, 1);
  }
  if (pieces_.size() == (sealed_ ? 1 : 0)) hash.add(kPadding, 1);
  return hash.value();
}

std::vector<std::span<const std::byte>> ConstantPool::pieces() const {
  std::vector<std::span<const std::byte>> result;
  int64_t at = 0;
  const auto pad = [&](int64_t to) {
    if (to > at) result.emplace_back(kPadding, static_cast<size_t>(to - at));
    at = to;
  };
  for (const Piece& piece : pieces_) {
    pad(piece.offset);
    result.emplace_back(piece.value.data(), static_cast<size_t>(piece.value.bytes()));
    at += piece.value.bytes();
  }
  pad(bytes());
  return result;
}

}  // namespace aglow::codegen
