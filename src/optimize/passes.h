// Passes that remove what is useless or double.
#pragma once

#include "rewrite/pass.h"

namespace aglow {

// Erases nodes whose results nobody reads, and constants that nobody uses. Placeholders stay: they are the interface.
Pass deadCodePass();

// Makes one of nodes that compute the same, and of constants with the same bytes.
Pass sharingPass();

}  // namespace aglow
