// SHA-256 (FIPS 180-4): a hash for which no two inputs with the same value are known.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace aglow {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);
// 64 digits.
std::string hexadecimal(const Digest& digest);

}  // namespace aglow
