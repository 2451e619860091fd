// What `compile` writes, for commands that write a part of it.
#pragma once

#include <memory>

#include "cli/model_options.h"
#include "compile/code_files.h"

namespace aglow::cli {

struct EmitOptions {
  ModelOptions model;
  std::vector<std::string> emit;
  std::vector<int64_t> batches;
  std::string outputDir, name, prefix, weights = "bin", kernels = "source";
  std::string maxSize;
  bool threads = false, debug = false, externalData = false, sizes = false, json = false;

  bool toFolder() const { return !outputDir.empty() && outputDir != "-"; }
  // Of files and functions.
  std::string symbol() const;
  // What of it is code.
  CodeFileOptions codeOptions() const;
};

// The command with its values in these options.
Command compileCommand(std::shared_ptr<EmitOptions> options);

// The words of a command line that ask for what a bundle's bytes follow from, besides the model; and the words of such
// a text.
std::string recordedWords(EmitOptions options);
std::vector<std::string> wordsOf(const std::string& recorded);

// Compiles for each set of sizes; what stages make goes to the files, or to stdout. Sources of code are none where none
// is asked for.
Diagnosed<std::vector<CodeSource>> compileSources(FileSet& files, EmitOptions& emit, const CodeFileOptions& code);
// Gives the files their names, where they are not larger than allowed, and tells their sizes.
Status finishFiles(const EmitOptions& emit, FileSet& files);

}  // namespace aglow::cli
