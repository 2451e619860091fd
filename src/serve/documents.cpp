#include "serve/documents.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "serve/datatype.h"

namespace aglow::serve {

namespace {

using Json = nlohmann::ordered_json;

std::string textOf(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json portsJson(const std::vector<PortSpec>& ports) {
  Json list = Json::array();
  for (const PortSpec& port : ports)
    list.push_back({{"name", port.name}, {"datatype", datatypeOf(port)}, {"shape", shapeOf(port)}});
  return list;
}

Json latencyJson(const LatencyHistogram& times) {
  return {{"count", times.count()},         {"p50_us", times.quantile(0.5)}, {"p90_us", times.quantile(0.9)},
          {"p99_us", times.quantile(0.99)}, {"sum_us", times.sum()},         {"ranges_us", times.ranges()}};
}

}  // namespace

std::string datatypeOf(const PortSpec& port) {
  if (port.holds == PortSpec::Holds::Strings) return std::string(kBytes);
  if (port.holds == PortSpec::Holds::Other || !port.hasKind) return port.text;
  const auto datatype = datatypeOf(port.kind);
  return std::string(datatype ? *datatype : elemName(port.kind));
}

std::vector<int64_t> shapeOf(const PortSpec& port) {
  std::vector<int64_t> shape;
  for (const OpenDim& dim : port.dims) shape.push_back(dim.size);
  return shape;
}

std::string serverMetadata() {
  return textOf({{"name", kServerName}, {"version", AGLOW_VERSION}, {"extensions", kExtensions}});
}

std::string modelMetadata(const ServedModel& model, const std::vector<std::string>& versions) {
  return textOf({{"name", model.name},
                 {"versions", versions},
                 {"platform", "aglow"},
                 {"inputs", portsJson(model.spec.inputs)},
                 {"outputs", portsJson(model.spec.outputs)}});
}

std::string indexJson(const std::vector<IndexRow>& rows) {
  Json list = Json::array();
  for (const IndexRow& row : rows)
    list.push_back({{"name", row.name},
                    {"version", row.version},
                    {"state", row.ready ? "READY" : "UNAVAILABLE"},
                    {"reason", row.reason}});
  return textOf(list);
}

std::string statusJson(const Service& service, const Counters& counters) {
  const HostStatistics statistics = service.statistics();
  Json models = Json::array(), devices = Json::array();
  for (const NetworkStatistics& network : statistics.networks) {
    Json batches = Json::object();
    for (const auto& [rows, count] : network.batches) batches[std::to_string(rows)] = count;
    models.push_back({{"name", network.name},
                      {"version", network.version},
                      {"current", network.current},
                      {"accepted", network.accepted},
                      {"refused", network.refused},
                      {"succeeded", network.succeeded},
                      {"failed", network.failed},
                      {"cancelled", network.cancelled},
                      {"expired", network.expired},
                      {"retried", network.retried},
                      {"waiting", network.waiting},
                      {"running", network.running},
                      {"replicas", network.replicas},
                      {"wanted", network.wanted},
                      {"batches", batches},
                      {"queue", latencyJson(network.queue)},
                      {"run", latencyJson(network.run)},
                      {"total", latencyJson(network.total)}});
  }
  for (const DeviceStatistics& device : statistics.devices)
    devices.push_back({{"name", device.name},
                       {"backend", device.backend},
                       {"healthy", device.healthy},
                       {"fault", device.fault},
                       {"memory_bytes", device.memoryUsed},
                       {"memory_limit_bytes", device.memoryLimit},
                       {"waiting", device.waiting},
                       {"running", device.running},
                       {"runs", device.runs},
                       {"utilisation", device.utilisation}});
  return textOf({{"server", fmt::format("{} {}", kServerName, AGLOW_VERSION)},
                 {"draining", service.host().draining()},
                 {"connections", counters.connections.load()},
                 {"buffered_bytes", counters.buffered.load()},
                 {"models", models},
                 {"devices", devices}});
}

}  // namespace aglow::serve
