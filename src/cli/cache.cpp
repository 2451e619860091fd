// aglow cache: what is kept of compiled models, and its end.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "backends/package_cache.h"
#include "cli/cli.h"

namespace aglow::cli {

namespace {

struct CacheOptions {
  std::string folder;
  bool clear = false, json = false;
};

using Entries = std::vector<PackageCache::Entry>;

std::string text(const std::string& folder, const Entries& entries, int64_t bytes, int64_t limit, bool cleared) {
  if (folder.empty()) return "nothing is kept: the cache is off\n";
  std::string out = fmt::format("{}\n  {}{} files, {} bytes (at most {})\n", folder, cleared ? "removed: " : "",
                                entries.size(), bytes, limit);
  if (cleared) return out;
  for (const auto& entry : entries)
    out += fmt::format("  {:>12} bytes, used {:>9} s ago  {}\n", entry.bytes, entry.unusedSeconds, entry.name);
  return out;
}

Status execute(const CacheOptions& options) {
  const std::string folder = cacheFolder(options.folder);
  const PackageCache cache(folder);
  AGLOW_TRY(const Entries entries, options.clear ? cache.clear() : cache.entries());
  int64_t bytes = 0;
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const auto& entry : entries) {
    bytes += entry.bytes;
    files.push_back({{"name", entry.name}, {"bytes", entry.bytes}, {"unused_s", entry.unusedSeconds}});
  }
  if (!options.json) return printOut(text(folder, entries, bytes, cache.limit(), options.clear));
  const nlohmann::ordered_json json = {{"folder", folder},
                                       {"bytes", bytes},
                                       {"limit_bytes", cache.limit()},
                                       {"cleared", options.clear},
                                       {"files", files}};
  return printOut(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

Command cacheCommand() {
  auto options = std::make_shared<CacheOptions>();
  return {.name = "cache",
          .doc = "List or clear the compiled models that are kept",
          .options = {{"--cache", &options->folder,
                       "Folder of the cache (default: AGLOW_CACHE_DIR, or aglow in the user's cache)", "DIR"},
                      {"--clear", &options->clear, "Remove all of it"},
                      {"--json", &options->json, "Output for programs"}},
          .footer = "Examples:\n  aglow cache\n  aglow cache --clear",
          .action = [options] { return finish(execute(*options)); }};
}

}  // namespace aglow::cli
