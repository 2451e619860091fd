// aglow explain: what an error code means.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

nlohmann::ordered_json jsonOf(const CodeInfo& info) {
  return {{"code", info.id},
          {"title", info.title},
          {"exit_code", static_cast<int>(info.exit)},
          {"explanation", info.explanation}};
}

Status list(bool json) {
  std::string out;
  nlohmann::ordered_json rows;
  for (const CodeInfo& info : allCodes()) {
    out += fmt::format("{}  {}\n", info.id, info.title);
    rows.push_back(jsonOf(info));
  }
  return json ? printJson({{"codes", rows}}) : printOut(out);
}

ExitCode explain(const std::string& id, bool json) {
  if (id.empty()) return finish(list(json));
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
  if (json) return finish(printJson(jsonOf(*info)));
  return finish(printOut(fmt::format("{}: {} (exit code {})\n\n{}\n", info->id, info->title,
                                     static_cast<int>(info->exit), info->explanation)));
}

}  // namespace

Command explainCommand() {
  struct Words {
    std::string id;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  return {.name = "explain",
          .doc = "Say what an error code means, or list them all",
          .options = {{"code", &words->id, "For instance E301"}, {"--json", &words->json, "Output for programs"}},
          .action = [words] { return explain(words->id, words->json); }};
}

}  // namespace aglow::cli
