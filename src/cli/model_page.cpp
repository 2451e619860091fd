#include "cli/model_page.h"

#include <fmt/format.h>

#include <filesystem>

#include "page/page.h"
#include "report/programs.h"
#include "support/file_set.h"

namespace aglow::cli {

void ModelPage::add(const Compilation& compilation) {
  for (const Program& program : compilation.programs) programs_.push_back(programJson(program));
}

void ModelPage::add(size_t function, const nlohmann::json& profile, const nlohmann::ordered_json& run) {
  std::map<size_t, const nlohmann::json*> times;
  for (const nlohmann::json& row : profile["instructions"]) times[row["number"].get<size_t>()] = &row;
  for (nlohmann::json& instruction : programs_[function]["instructions"])
    if (const auto it = times.find(instruction["number"].get<size_t>()); it != times.end()) {
      instruction["ms"] = (*it->second)["ms"];
      instruction["share"] = (*it->second)["share"];
    }
  peak_ = {{"gflops", profile["peak_gflops"]}, {"gbytes_per_s", profile["peak_gbytes_per_s"]}};
  run_ = run;
  facts_ = fmt::format("{} on {}, {} threads: {:.3f} ms", run["backend"].get<std::string>(),
                       run["target"].get<std::string>(), run["threads"].get<int>(), run["median_ms"].get<double>());
}

Status ModelPage::write(const std::string& path, const std::string& model) && {
  nlohmann::json data = std::move(stages_).json();
  const std::string title = std::filesystem::path(model).filename().string();
  data["title"] = title;
  data["facts"] = facts_;
  data["programs"] = std::move(programs_);
  if (!peak_.is_null()) data["peak"] = std::move(peak_);
  if (!run_.is_null()) data["run"] = std::move(run_);
  const std::string text = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string page = htmlOf(Page{.title = title, .data = text});
  return writeFileAtomically(path, std::as_bytes(std::span(page)));
}

}  // namespace aglow::cli
