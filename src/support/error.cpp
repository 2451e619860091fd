#include "support/error.h"

#include <algorithm>
#include <cctype>

namespace aglow {

void failCheck(const char* condition, const char* file, int line, const std::string& message) {
  std::string_view path = file;
  if (const auto slash = path.rfind("src/"); slash != std::string_view::npos) path.remove_prefix(slash);
  throw InternalError(std::string(path) + ":" + std::to_string(line) + ": " + message + " [" + condition + "]");
}

const std::vector<CodeInfo>& allCodes() {
  static const std::vector<CodeInfo> table = {
#define AGLOW_ERROR(name, id, exitCode, title, explanation) {Code::name, id, ExitCode::exitCode, title, explanation},
#include "support/error_codes.inc"
#undef AGLOW_ERROR
  };
  return table;
}

const CodeInfo& codeInfo(Code code) { return allCodes().at(static_cast<size_t>(code)); }

const CodeInfo* findCode(std::string_view id) {
  const auto sameLetter = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (const CodeInfo& info : allCodes())
    if (std::equal(id.begin(), id.end(), info.id.begin(), info.id.end(), sameLetter)) return &info;
  return nullptr;
}

Error Error::at(std::string_view place) && {
  where = where.empty() ? std::string(place) : std::string(place) + ": " + where;
  return std::move(*this);
}

Error Error::withHint(std::string text) && {
  hint = std::move(text);
  return std::move(*this);
}

std::string Error::text() const {
  std::string out = "error[" + std::string(codeInfo(code).id) + "] ";
  if (!where.empty()) out += where + ": ";
  out += message;
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

}  // namespace aglow
