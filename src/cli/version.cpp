#include "cli/version.h"

#include <fmt/format.h>

#include "backends/cpu/code/targets.h"
#include "cli/commit.inc"

namespace aglow::cli {

namespace {

constexpr BuildFacts kFacts{.version = AGLOW_VERSION,
                            .commit = AGLOW_COMMIT,
#ifdef AGLOW_LLVM_VERSION
                            .llvm = AGLOW_LLVM_VERSION,
#endif
                            .compiler = __VERSION__};

}  // namespace

const BuildFacts& buildFacts() { return kFacts; }

std::string versionText() {
  std::string text = fmt::format("aglow {} (", kFacts.version);
  if (!kFacts.commit.empty()) text += fmt::format("commit {}, ", kFacts.commit);
  if (kFacts.llvm.empty()) return text + "without LLVM)";
  text += fmt::format("LLVM {}, targets", kFacts.llvm);
  for (const codegen::TestedTarget& target : codegen::testedTargets())
    text += fmt::format(" {}", target.architecture());
  return text + ")";
}

}  // namespace aglow::cli
