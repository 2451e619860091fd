// What this program was built from.
#pragma once

#include <string>
#include <string_view>

namespace aglow::cli {

struct BuildFacts {
  std::string_view version, commit;  // the commit is empty where the sources are no checkout
  std::string_view llvm;             // empty without the backend that needs it
  std::string_view compiler;
};
const BuildFacts& buildFacts();

// "aglow 0.1.0 (commit 0a1b2c3d, LLVM 19.1.7, targets x86_64 aarch64 riscv64)"
std::string versionText();

}  // namespace aglow::cli
