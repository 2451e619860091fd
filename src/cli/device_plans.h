// Plans that say by hand which node of a model goes to which device.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "support/error.h"

namespace aglow::cli {

// A file that holds a JSON object.
Result<nlohmann::json> readObject(const std::string& path);

// Nodes to names of devices: {"conv1": "card0", …}.
Result<std::map<std::string, std::string>> readDevicePlan(const std::string& path);

}  // namespace aglow::cli
