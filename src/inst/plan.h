// How a backend runs an instruction: chosen once, before anything is fused or placed, and read by all that comes after.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aglow {

// A kernel that was tried before the one that was taken, and why it does not fit: what it needs against what is there.
struct Refusal {
  std::string kernel, reason;

  bool operator==(const Refusal&) const = default;
};

// How an instruction falls into parts that touch their own bytes of some operands: parts of every image, all images. An
// operand is [images, outer, parts, the rest] then, and part (i, p) touches nothing but [i, all, p, all] of it.
struct Cut {
  int64_t axis = 0;  // what is cut, for the backend
  int64_t images = 1, parts = 1;
  std::vector<int64_t> outer = {};  // by operand; 0: any part may read all of it

  int64_t count() const { return images * parts; }
  bool operator==(const Cut&) const = default;
};

struct Plan {
  // The name of a backend's kernel, or kLoops.
  std::string kernel;
  int64_t units = 1;         // independent pieces of work, in the step that has the most; not of the number of threads
  int64_t scratchBytes = 0;  // working memory besides the operands
  // Of a kernel that hands its results to what is fused with it: the extents under which it walks over its first
  // result.
  std::optional<std::array<int64_t, 4>> epilogue = {};
  std::optional<Cut> cut = {};        // of a member of a chain
  std::vector<Refusal> refused = {};  // in the order in which they were tried

  // No kernel: code is generated for the loops of the instruction itself.
  static constexpr const char* kLoops = "loops";
  bool isLoops() const { return kernel == kLoops; }

  bool operator==(const Plan&) const = default;
};

}  // namespace aglow
