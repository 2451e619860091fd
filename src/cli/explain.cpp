// aglow explain: what an error code means.
#include <fmt/format.h>

#include "cli/cli.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

ExitCode explain(const std::string& id) {
  if (id.empty()) {
    std::string out;
    for (const CodeInfo& info : allCodes()) out += fmt::format("{}  {}\n", info.id, info.title);
    const Status printed = printOut(out);
    return printed.ok() ? ExitCode::Ok : report(printed.error());
  }
  const CodeInfo* info = findCode(id);
  if (info == nullptr) {
    std::vector<std::string_view> ids;
    for (const CodeInfo& row : allCodes()) ids.push_back(row.id);
    return report(Error{.code = Code::Usage,
                        .message = fmt::format("there is no error code '{}'", id),
                        .where = {},
                        .hint = fmt::format("{}{}`aglow explain` lists all", didYouMean(id, ids),
                                            didYouMean(id, ids).empty() ? "" : "; ")});
  }
  const Status printed = printOut(fmt::format("{}: {} (exit code {})\n\n{}\n", info->id, info->title,
                                              static_cast<int>(info->exit), info->explanation));
  return printed.ok() ? ExitCode::Ok : report(printed.error());
}

}  // namespace

Command explainCommand() {
  auto id = std::make_shared<std::string>();
  return {.name = "explain",
          .doc = "Say what an error code means, or list them all",
          .options = {{"code", id.get(), "For instance E301"}},
          .action = [id] { return explain(*id); }};
}

}  // namespace aglow::cli
