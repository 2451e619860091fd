#include "backends/device/spirv.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "support/file_set.h"
#include "support/process.h"
#include "support/temporary.h"

namespace aglow::device {

namespace {

// Programs by version, as distributions name them; the last is whatever the machine calls its own.
constexpr const char* kVersions[] = {"-22", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14", ""};
// Those whose clang has SPIR-V among its targets.
constexpr const char* kAlone[] = {"-22", "-21", "-20", ""};

// Not optimized: the driver does that, and the translator does not know all that optimized code has (`freeze`). At -O0
// clang would ask drivers to leave it so.
std::vector<std::string> compiler(const char* version, const char* triple, const SpirvTarget& target) {
  std::string extensions = "-cl-ext=-all";
  for (const std::string& name : target.extensions) extensions += ",+" + name;
  std::vector<std::string> words = {fmt::format("clang{}", version),
                                    fmt::format("--target={}", triple),
                                    "-x",
                                    "cl",
                                    "-cl-std=CL1.2",
                                    "-w",
                                    "-O2",
                                    "-Xclang",
                                    "-disable-llvm-passes",
                                    "-Xclang",
                                    extensions,
                                    "-c"};
  for (const std::string& name : target.macros) words.push_back("-D" + name);
  return words;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

bool isSpirv(const std::string& bytes) {
  uint32_t magic = 0;
  if (bytes.size() < 5 * sizeof magic || bytes.size() % sizeof magic != 0) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == 0x07230203;
}

}  // namespace

Result<std::string> spirvOf(const std::string& source, const SpirvTarget& target) {
  AGLOW_TRY(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string from = folder.file("kernels.cl"), between = folder.file("kernels.bc"),
                    to = folder.file("kernels.spv");
  AGLOW_OK(writeFileAtomically(from, std::as_bytes(std::span(source))));
  std::vector<std::vector<std::vector<std::string>>> ways;
  for (const char* version : kVersions)
    ways.push_back({with(compiler(version, "spirv64", target), {"-emit-llvm", from, "-o", between}),
                    {fmt::format("llvm-spirv{}", version), "--spirv-max-version=1.0", between, "-o", to}});
  for (const char* version : kAlone) ways.push_back({with(compiler(version, "spirv64v1.0", target), {from, "-o", to})});
  std::string said;
  for (const auto& programs : ways) {
    int code = 0;
    for (size_t i = 0; i < programs.size() && code == 0; ++i) {
      AGLOW_TRY(code, runProgram(programs[i], folder.path()));
    }
    if (code == kNoProgram) continue;
    if (std::string made = readAll(to); code == 0 && isSpirv(made)) return made;
    // What the last says tells nothing of the kernels: it may be a clang that is too old for it.
    if (said.empty() && &programs != &ways.back()) said = fmt::format(": {}", readAll(folder.file("log")));
  }
  return Error{.code = Code::Device,
               .message = fmt::format("SPIR-V of the kernels cannot be made{}", said),
               .where = {},
               .hint =
                   "it takes clang, as clang-15, with the llvm-spirv of its version, as llvm-spirv-15 (packages of "
                   "Debian and Ubuntu), or a clang from version 20 on; without them there is --kernels source"};
}

}  // namespace aglow::device
