#include "compile/text_files.h"

#include "support/file.h"

namespace aglow {

bool isTextForm(std::string_view path) { return path.ends_with(".graph") || path.ends_with(".ir"); }

Status writeTextFile(const std::string& path, const std::string& text) {
  return writeFileAtomically(path, std::as_bytes(std::span(text)));
}

std::string graphText(const Module&) { return {}; }
std::string programText(const Program&) { return {}; }
Status writeGraphFile(const std::string& path, const Module& module) { return writeTextFile(path, graphText(module)); }
Status writeProgramFile(const std::string& path, const Program& program) { return writeTextFile(path, programText(program)); }
Result<std::unique_ptr<Module>> readGraphFile(const std::string& path) { return Error{.code = Code::BadText, .message = "cannot be read", .where = path}; }
Result<Program> readProgramFile(const std::string& path) { return Error{.code = Code::BadText, .message = "cannot be read", .where = path}; }

}  // namespace aglow
