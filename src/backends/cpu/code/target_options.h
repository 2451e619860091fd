// Which machine code is for, and how hard to try.
#pragma once

#include <string>

namespace aglow::codegen {

struct TargetOptions {
  std::string triple = {};     // empty: this machine
  std::string cpu = {};        // empty: this machine's, or the triple's generic one; "native": this machine's
  std::string features = {};   // "+avx2,-avx512f" on top of the cpu's own
  std::string codeModel = {};  // empty, small, medium or large
  int optLevel = 3;
  bool optSize = false;

  bool operator==(const TargetOptions&) const = default;
};

}  // namespace aglow::codegen
