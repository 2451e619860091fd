// Structural equality and hashes of graphs, for tests and caches.
#pragma once

#include <cstdint>
#include <string>

#include "graph/module.h"

namespace aglow {

enum class Names : uint8_t { Compare, Ignore };

// What differs first, in words; nothing when both are equal: the same nodes in the same order with the same operands,
// attributes (bit for bit), types and constants. Storage of two functions corresponds as they use it.
std::string difference(const Function& a, const Function& b, Names names = Names::Compare);
std::string difference(const Module& a, const Module& b, Names names = Names::Compare);

inline bool equal(const Function& a, const Function& b, Names names = Names::Compare) {
  return difference(a, b, names).empty();
}
inline bool equal(const Module& a, const Module& b, Names names = Names::Compare) {
  return difference(a, b, names).empty();
}

// Equal graphs have equal hashes, on every run and machine.
uint64_t structuralHash(const Function& function, Names names = Names::Compare);
uint64_t structuralHash(const Module& module, Names names = Names::Compare);

}  // namespace aglow
