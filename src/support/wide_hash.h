// A hash of large blocks that cannot be deceived: SHA-256 of sixteen interleaved streams, which vectors compute side by
// side, and of their results.
#pragma once

#include <cstddef>
#include <span>

#include "support/sha256.h"

namespace aglow {

// The same on every processor; not SHA-256 of the bytes themselves.
Digest wideHash(std::span<const std::byte> bytes);

}  // namespace aglow
