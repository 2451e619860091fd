// Passes that remove what is useless or double, or have it skipped.
#pragma once

#include "rewrite/pass.h"

namespace aglow {

// Erases nodes whose results nobody reads, and constants that nobody uses. Placeholders stay: they are the interface.
Pass deadCodePass();

// Makes one of nodes that compute the same, and of constants with the same bytes.
Pass sharingPass();

// Gives nodes the predicate that all their uses have, and what a Where chooses the condition under which it does, where
// the work that may be saved is worth more than what a predicate keeps from being fused.
Pass carryPredicatesPass();

}  // namespace aglow
