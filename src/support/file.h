// Files as the compiler uses them: read by mapping, written all or nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "support/error.h"

namespace aglow {

// The bytes of a file, mapped for reading as long as a copy of owner lives; data is null for an empty file.
struct MappedFile {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  size_t size = 0;

  std::span<const std::byte> bytes() const { return {data, size}; }
};

// Only regular files are read (E801 otherwise), and pipes never block.
Result<MappedFile> mapFile(const std::string& path);

// Writes the pieces one after the other to a temporary file in the same folder, which then takes the name. On any
// fault (E802) what was at the path is still there, and no partial file is. Only regular files are replaced.
Status writeFileAtomically(const std::string& path, std::span<const std::span<const std::byte>> pieces);
inline Status writeFileAtomically(const std::string& path, std::span<const std::byte> bytes) {
  return writeFileAtomically(path, std::span(&bytes, 1));
}

}  // namespace aglow
