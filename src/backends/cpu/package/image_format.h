// How a block of linked code begins: what it consists of, then tables, in this order: moves, imports, entries, names.
#pragma once

#include <cstdint>

namespace aglow::codegen {

struct ImageHeader {
  char magic[8] = {'a', 'g', 'l', 'o', 'w', 'i', 'm', 'g'};
  uint64_t bytes = 0;                     // of the block; whole pages
  uint64_t textAt = 0, textBytes = 0;     // what is run; from one page to the next part's
  uint64_t tablesAt = 0, tableBytes = 0;  // what depends on where the block lies; the last part
  uint64_t moves = 0, imports = 0, entries = 0;
  uint64_t nameBytes = 0;
};

// The address of the byte `to` belongs at the byte `at`.
struct ImageMove {
  uint64_t at = 0, to = 0;
};

// The address of a function of the process belongs at the byte `at`. Its name ends with a zero byte.
struct ImageImport {
  uint64_t at = 0, name = 0;
};

using ImageEntry = uint64_t;  // where the code of a program begins

}  // namespace aglow::codegen
