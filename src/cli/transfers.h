// Copies between host and device, and how much of them is hidden: for `inspect --memory` and traces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "memory/timeline.h"

namespace aglow::cli {

// By the latencies of the backend's device; nothing where nothing travels.
std::optional<Timeline> timelineOf(const Program& program, const Backend& backend);

// The sums, and the largest copies with when they travel and how long the device stands still for them.
std::string transfersText(const Program& program, const Timeline& timeline);
nlohmann::json transfersJson(const Program& program, const Timeline& timeline);

}  // namespace aglow::cli
