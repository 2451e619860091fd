// The weights' hash, for the check of a bundle.
#include "support/block_hash.h"

extern "C" uint64_t aglow_hash_lines(const void* data, int64_t lines) {
  aglow::LineHash hash;
  hash.add(data, lines);
  return hash.value();
}
