// Lowering: composite nodes become core nodes. One rule per composite record; opgen's table names them all.
#pragma once

#include <functional>
#include <vector>

#include "graph/builder.h"

namespace aglow {

// Builds the replacement of a composite node with a builder that stands before it; one value per result. Results that
// nobody uses may be empty. A use it cannot express is a BuildFailure (UnsupportedFeature).
using LowerRule = std::vector<Value>(Builder& b, Node& node);

// The rule of a composite operator.
LowerRule* lowerRule(Op op);

// Whether a backend wants to keep a composite as it is (it has a better way).
using KeepComposite = std::function<bool(const Node&)>;

// Lowers until only core nodes and kept composites are left. Reports whether anything changed.
Result<bool> lower(Function& function, const KeepComposite& keep = {});

}  // namespace aglow
