// Batch norms in the form in which they train.
#pragma once

#include "graph/module.h"

namespace aglow {

// Batch norms with the statistics of their batch in place of those that a model predicts with. These become state, and
// move towards the batch's: they keep `momentum` of themselves. Throws as builders do.
void trainBatchNorms(Function& function, double momentum);

}  // namespace aglow
