// Both IRs as texts in memory, with the constants that are too large to stand in them.
#pragma once

#include <string>

#include "compile/compile.h"
#include "graph/blobs.h"

namespace aglow {

struct TextForm {
  std::string text;
  BlobStore blobs;

  // Whether it holds instructions rather than a graph.
  bool isProgram() const;
};

// What the module is now; the bytes of its constants stay where they are.
TextForm textFormOf(const Module& module);
// The way back: BadText with line and column.
Diagnosed<Compilation> compileText(const TextForm& form, const CompileOptions& options);

}  // namespace aglow
