// Differentiation: Gradient nodes, which ask for the gradient of one value by another, become the nodes that compute
// it. Everything they become is made of operators that also have gradients, so that gradients of gradients work as
// well.
#pragma once

#include "graph/builder.h"

namespace aglow {

// What a composite without a rule of its own is made of: the rule that lowering has for it.
using Expansion = std::vector<Value>(Builder& b, Node& node);
using ExpansionOf = Expansion*(Op op);

// Replaces all Gradient nodes of a function, each by what stands before it; reports whether there were any. Composites
// on the way whose gradient is that of their lowering are lowered. UnsupportedFeature names all nodes that gradients
// would have to pass and cannot.
Result<bool> differentiate(Function& function, ExpansionOf* expansionOf);

}  // namespace aglow
