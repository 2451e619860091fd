// The operators that compute the same on blocked channels as on planar ones, and how.
#pragma once

#include "backends/cpu/layout/blocks.h"

namespace aglow {

// Gives values in either form while a graph is being rewritten.
class BlockSource {
public:
  BlockSource(Builder& builder, Blocks form) : b(builder), blocks(form) {}
  virtual ~BlockSource() = default;

  virtual Value blocked(Value v) = 0;
  virtual Value planar(Value v) = 0;
  // Operand of an elementwise node with a result of this shape, such that it broadcasts against blocks.
  Value broadcast(Value v, const Shape& result);

  Builder& b;
  const Blocks blocks;
};

struct BlockedOp {
  // Whether this node has a blocked form.
  bool (*fits)(Node& node, const Blocks& blocks);
  // Whether an operand is read in the form of the result; others are read planar, or known.
  bool (*follows)(Node& node, int slot);
  // The result in blocks.
  Value (*build)(Node& node, BlockSource& source);
};

// The row of an operator, or null.
const BlockedOp* findBlockedOp(const Node& node);

// Transposes between [batch, channel, spatial...] and [batch, spatial..., channel]: they lead to blocks and back as
// cheaply as to the planar form.
bool leadsFromChannelsLast(const Node& node);
bool leadsToChannelsLast(const Node& node);

// Whether a node looks at the channels of a value, its last operand, as they lie: it takes either form.
bool observesChannels(const Node& node);

}  // namespace aglow
