// Shapes and conversions of blocked channels.
#include "backends/cpu/layout/blocks.h"

#include <algorithm>
#include <cstring>

#include "support/sizes.h"

namespace aglow {

using Ints = std::vector<int64_t>;

namespace {

constexpr int kMinRank = 4;  // of the planar form, before the lanes are split off

// 0, 1, ..., count - 1
Ints upTo(int64_t count) {
  Ints list;
  for (int64_t i = 0; i < count; ++i) list.push_back(i);
  return list;
}

Value padded(Builder& b, Value x, int axis, int64_t extent) {
  if (x.dim(axis) == extent) return x;
  Ints before(static_cast<size_t>(x.rank()), 0), after = before;
  after[static_cast<size_t>(axis)] = extent - x.dim(axis);
  return b.pad(x, b.scalarLike(x, 0), {.before = before, .after = after});
}

Value cut(Builder& b, Value x, int axis, int64_t extent) {
  if (x.dim(axis) == extent) return x;
  Ints sizes = x.shape().dims();
  sizes[static_cast<size_t>(axis)] = extent;
  return b.slice(x, {.starts = Ints(sizes.size(), 0), .sizes = sizes});
}

// x, seen under the shape `as`, with its axes in another order, under the shape `to`. All is one view where only axes
// of extent 1 change places.
Value moved(Builder& b, Value x, const Ints& as, const Ints& perm, const Ints& to) {
  Ints kept;
  for (const int64_t axis : perm)
    if (as[static_cast<size_t>(axis)] != 1) kept.push_back(axis);
  if (std::is_sorted(kept.begin(), kept.end())) return b.reshaped(x, to);
  return b.reshaped(b.transpose(b.reshaped(x, as), {.perm = perm}), to);
}

}  // namespace

bool hasNoPlane(const Shape& planar) {
  return std::all_of(planar.dims().begin() + 2, planar.dims().end(), [](int64_t d) { return d == 1; });
}

int64_t Blocks::count(int64_t channels) const { return isWhole() ? 1 : ceilDiv(channels, lanes_); }

bool Blocks::canHold(const Type& type) {
  constexpr int kMaxRank = 8;
  return type.rank() >= 2 && type.rank() <= kMaxRank && type.elements() > 0 && !isQuantized(type.kind());
}

Ints Blocks::dims(const Shape& planar) const {
  Ints dims = planar.dims();
  const int64_t lanes = lanesOf(dims[1]);
  dims[1] = count(dims[1]);
  dims.insert(dims.begin() + 2, static_cast<size_t>(std::max(kMinRank - planar.rank(), 0)), 1);
  dims.push_back(lanes);
  return dims;
}

int Blocks::axisOrChannels(int64_t planarAxis, int rank) const {
  return planarAxis == 1 && isWhole() ? std::max(rank, kMinRank) : axis(planarAxis, rank);
}

int Blocks::axis(int64_t planarAxis, int rank) {
  return static_cast<int>(planarAxis) + (planarAxis < 2 ? 0 : std::max(kMinRank - rank, 0));
}

Ints Blocks::spatialList(Ints list, int64_t missing, int64_t last) {
  if (list.empty()) return list;
  while (static_cast<int>(list.size()) < kMinRank - 2) list.insert(list.begin(), missing);
  list.push_back(last);
  return list;
}

Value Blocks::fromPlanar(Builder& b, Value x) const {
  Ints dims = this->dims(x.shape());
  const int64_t lanes = dims.back();
  // A single block is filled up after the move, which then has less to do; a small one before, where rows are long.
  constexpr int64_t kSmall = 4;
  if (dims[1] > 1 || lanes <= kSmall) x = padded(b, x, 1, dims[1] * lanes);
  dims.back() = x.dim(1) / dims[1];
  Ints split{dims[0], dims[1], dims.back()}, perm{0, 1};
  split.insert(split.end(), x.shape().dims().begin() + 2, x.shape().dims().end());
  for (int64_t axis = 3; axis <= x.rank(); ++axis) perm.push_back(axis);
  perm.push_back(2);
  const Value y = moved(b, x, split, perm, dims);
  return padded(b, y, y.rank() - 1, lanes);
}

Value Blocks::toPlanar(Builder& b, Value x, const Shape& planar) const {
  if (x.dim(1) == 1) x = cut(b, x, x.rank() - 1, planar[1]);
  Ints whole = planar.dims(), perm = upTo(x.rank() - 1);
  whole[1] = x.dim(1) * x.dim(x.rank() - 1);
  perm.insert(perm.begin() + 2, x.rank() - 1);
  return cut(b, moved(b, x, x.shape().dims(), perm, whole), 1, planar[1]);
}

Value Blocks::fromChannelsLast(Builder& b, Value x) const {
  const int last = x.rank() - 1;
  Ints planar = x.shape().dims();
  planar.insert(planar.begin() + 1, planar.back());
  planar.pop_back();
  const Ints dims = this->dims(Shape(planar));
  Ints split = x.shape().dims();
  split.back() = dims[1];
  split.push_back(dims.back());
  Ints perm = upTo(last);
  perm.insert(perm.begin() + 1, last);
  perm.push_back(last + 1);
  return moved(b, padded(b, x, last, dims[1] * dims.back()), split, perm, dims);
}

Value Blocks::toChannelsLast(Builder& b, Value x, const Shape& channelsLast) const {
  Ints perm{0}, whole = channelsLast.dims();
  for (int64_t axis = 2; axis < x.rank() - 1; ++axis) perm.push_back(axis);
  perm.insert(perm.end(), {1, x.rank() - 1});
  whole.back() = x.dim(1) * x.dim(x.rank() - 1);
  return cut(b, moved(b, x, x.shape().dims(), perm, whole), channelsLast.rank() - 1, channelsLast.dims().back());
}

Tensor Blocks::tensor(const Tensor& planar) const {
  const Shape& shape = planar.type().shape();
  const int64_t channels = shape[1], lanes = lanesOf(channels);
  const int64_t plane = shape.elements() / (shape[0] * channels);
  const auto bytes = static_cast<size_t>(elemBytes(planar.type().kind()));
  Tensor blocked(planar.type().withShape(Shape(dims(shape))));
  std::byte* to = blocked.mutableData();
  const std::byte* from = planar.data();
  for (int64_t n = 0; n < shape[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < plane; ++i, from += bytes) {
        const int64_t block = n * count(channels) + c / lanes;
        std::memcpy(to + static_cast<size_t>((block * plane + i) * lanes + c % lanes) * bytes, from, bytes);
      }
  return blocked;
}

}  // namespace aglow
