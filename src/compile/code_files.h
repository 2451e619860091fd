// Generated code as files, bundles and parts of them: which files to write, and where.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "support/file_set.h"

namespace aglow {

// What --emit may ask for: "bundle" (object, header, weights), "so" (shared object, header, weights), "c" (source,
// header, weights), "exe" (a program that reads and writes .npy files), and the code alone.
inline constexpr std::string_view kCodeEmits[] = {"bundle", "so", "exe", "c", "obj", "asm", "llvm"};

struct CodeFileOptions {
  std::string name;  // a C identifier, of files and functions
  std::set<std::string, std::less<>> emit;
  std::string folder;  // empty: nothing is written, and only the text of asm and llvm comes back
  bool threads = false;
  bool weightsInC = false;
  bool spirv = false;         // kernels of devices as SPIR-V beside their source
  bool debug = false;         // with the instructions of each entry as NAME.ir
  std::string recorded = {};  // the words that ask for this bundle again
  // The weights alone, for code that has this layout.
  std::optional<uint64_t> weightsFor = {};
};

// What the code is made of: the functions of a model, for one set of sizes. All were compiled for the same target by
// the CPU backend.
struct CodeSource {
  std::string suffix;  // of the entries' names
  Compilation compilation;
};

// Adds the files that --emit asks for; the texts that have no folder to go to come back.
Result<std::string> addCodeFiles(FileSet& files, std::vector<CodeSource> sources, const CodeFileOptions& options);

}  // namespace aglow
