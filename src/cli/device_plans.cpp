#include "cli/device_plans.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/file.h"
#include "support/quote.h"

namespace aglow::cli {

Result<nlohmann::json> readObject(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  nlohmann::json json =
      nlohmann::json::parse(reinterpret_cast<const char*>(file.bytes.data()),
                            reinterpret_cast<const char*>(file.bytes.data()) + file.bytes.size(), nullptr, false);
  if (json.is_object()) return json;
  return Error{.code = Code::Usage, .message = fmt::format("{} holds no JSON object of nodes", aglow::quoted(path))};
}

Result<std::map<std::string, std::string>> readDevicePlan(const std::string& path) {
  AGLOW_TRY(const nlohmann::json json, readObject(path));
  std::map<std::string, std::string> plan;
  for (const auto& [node, device] : json.items()) {
    if (!device.is_string())
      return Error{.code = Code::Usage,
                   .message = fmt::format("{}: {} has no name of a device", path, aglow::quoted(node))};
    plan[node] = device.get<std::string>();
  }
  return plan;
}

}  // namespace aglow::cli
