// Both IRs as files: NAME.graph or NAME.ir, with NAME.blobs beside it for large constants.
#pragma once

#include <memory>
#include <string>

#include "graph/module.h"
#include "inst/program.h"

namespace aglow {

// Whether a path names a text form, by its ending.
bool isTextForm(std::string_view path);

// For the eye: large constants are only named.
std::string graphText(const Module& module);
std::string programText(const Program& program);

// The text and, when there are large constants, the file of blobs.
Status writeGraphFile(const std::string& path, const Module& module);
Status writeProgramFile(const std::string& path, const Program& program);
Result<std::unique_ptr<Module>> readGraphFile(const std::string& path);
Result<Program> readProgramFile(const std::string& path);

Status writeTextFile(const std::string& path, const std::string& text);

}  // namespace aglow
