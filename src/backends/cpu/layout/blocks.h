// Blocked channels: [batch, channel, spatial...] as [batch, channel / lanes, spatial..., lanes], with at least two
// spatial axes (of extent 1 where there are fewer). Lanes after the last channel hold anything and are never read.
#pragma once

#include "graph/builder.h"

namespace aglow {

class Blocks {
public:
  explicit Blocks(int64_t lanes) : lanes_(lanes) {}
  // All channels in one block, however many there are.
  static Blocks whole() { return Blocks(0); }

  bool isWhole() const { return lanes_ == 0; }
  int64_t lanes() const { return lanes_; }
  int64_t lanesOf(int64_t channels) const { return isWhole() ? channels : lanes_; }
  int64_t count(int64_t channels) const;

  // Whether values of a type can have this form: a channel axis, elements, and no scales.
  static bool canHold(const Type& type);
  // The blocked form of a planar shape, and where one of its axes other than the channels' lies in it; channels count
  // in blocks where there are several of these.
  std::vector<int64_t> dims(const Shape& planar) const;
  static int axis(int64_t planarAxis, int rank);
  int axisOrChannels(int64_t planarAxis, int rank) const;
  // A list with an entry for each spatial axis, for the blocked form: `missing` for axes that are put in, and `last`
  // for the lanes. An empty list stays empty.
  static std::vector<int64_t> spatialList(std::vector<int64_t> list, int64_t missing, int64_t last);

  // From the planar form to blocks and back. Without spatial extents these are views, but for filling up.
  Value fromPlanar(Builder& b, Value x) const;
  Value toPlanar(Builder& b, Value x, const Shape& planar) const;
  // The same from and to [batch, spatial..., channel].
  Value fromChannelsLast(Builder& b, Value x) const;
  Value toChannelsLast(Builder& b, Value x, const Shape& channelsLast) const;
  // Elements known when compiling, with zeros after the last channel.
  Tensor tensor(const Tensor& planar) const;

private:
  int64_t lanes_;
};

// Whether the spatial extents are all 1, so that the order of axes does not matter.
bool hasNoPlane(const Shape& planar);

}  // namespace aglow
