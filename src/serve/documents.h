// What a server tells about itself: metadata of the protocol as JSON, metrics for Prometheus, the status for its page.
#pragma once

#include <string>
#include <vector>

#include "serve/counters.h"
#include "serve/service.h"

namespace aglow::serve {

inline constexpr std::string_view kServerName = "aglow";
// Extensions of the protocol that are there.
inline constexpr std::string_view kExtensions[] = {"binary_tensor_data", "model_repository",
                                                   "model_repository(unload_dependents)", "schedule_policy"};

std::string serverMetadata();
std::string modelMetadata(const ServedModel& model, const std::vector<std::string>& versions);
std::string indexJson(const std::vector<IndexRow>& rows);
// Of the metadata: the datatype of an input or output, and its shape with -1 for what is open.
std::string datatypeOf(const PortSpec& port);
std::vector<int64_t> shapeOf(const PortSpec& port);

// In Prometheus' text form.
std::string metricsText(const Service& service, const Counters& counters);
// What the page shows: models, queues, latencies, devices.
std::string statusJson(const Service& service, const Counters& counters);
// The page, which asks for the status every second and loads nothing from elsewhere.
std::string_view statusPage();

}  // namespace aglow::serve
