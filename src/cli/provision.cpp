// aglow provision: several models on several devices: what goes where, or what is missing.
#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/device_plans.h"
#include "dynamic/model_source.h"
#include "runtime/host.h"
#include "support/file_set.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

struct ProvisionOptions {
  std::vector<std::string> models, dims;
  std::string devices, dot;
  bool json = false;
};

// A=model.onnx,parts=2,replicas=2,plan=plan.json
struct Wanted {
  std::string name, path, plan;
  size_t parts = 0;
  int replicas = 1;
};

Result<Wanted> wantedOf(const std::string& text) {
  Wanted wanted;
  size_t from = 0;
  for (int word = 0; from <= text.size(); ++word) {
    const size_t end = std::min(text.find(',', from), text.size());
    const std::string_view part = std::string_view(text).substr(from, end - from);
    from = end + 1;
    const size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    int number = 0;
    const auto [rest, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool counts = fault == std::errc() && rest == value.data() + value.size() && number >= 1 && number <= 1024;
    if (word == 0 && equals != std::string_view::npos && !name.empty() && !value.empty()) {
      wanted.name = std::string(name);
      wanted.path = std::string(value);
    } else if (word > 0 && name == "parts" && counts) {
      wanted.parts = static_cast<size_t>(number);
    } else if (word > 0 && name == "replicas" && counts) {
      wanted.replicas = number;
    } else if (word > 0 && name == "plan" && !value.empty()) {
      wanted.plan = std::string(value);
    } else {
      return Error{
          .code = Code::Usage,
          .message = fmt::format("{}: expected NAME=FILE[,parts=N][,replicas=N][,plan=FILE]", aglow::quoted(text))};
    }
  }
  return wanted;
}

std::string asText(const HostManager& host) {
  std::string out = fmt::format("{:<12} {:>14} {:>14}  {}\n", "device", "used B", "of B", "parts");
  for (const DeviceStatistics& device : host.statistics().devices) {
    std::string parts;
    for (const NetworkInfo& network : host.networks())
      for (size_t replica = 0; replica < network.replicas.size(); ++replica)
        for (size_t part = 0; part < network.replicas[replica].size(); ++part)
          if (network.replicas[replica][part] == device.name)
            parts += fmt::format(" {}{}{}", network.name,
                                 network.replicas[replica].size() > 1 ? fmt::format(".{}", part) : "",
                                 network.replicas.size() > 1 ? fmt::format("/{}", replica + 1) : "");
    out += fmt::format("{:<12} {:>14} {:>14} {}\n", device.name, device.memoryUsed, device.memoryLimit, parts);
  }
  return out;
}

std::string asJson(const HostManager& host) {
  nlohmann::ordered_json devices = nlohmann::ordered_json::array(), networks = nlohmann::ordered_json::array();
  for (const DeviceStatistics& device : host.statistics().devices)
    devices.push_back({{"name", device.name},
                       {"backend", device.backend},
                       {"memory_used", device.memoryUsed},
                       {"memory_limit", device.memoryLimit},
                       {"parts", device.parts}});
  for (const NetworkInfo& network : host.networks())
    networks.push_back({{"name", network.name}, {"replicas", network.replicas}});
  return nlohmann::ordered_json{{"devices", devices}, {"networks", networks}}.dump(2) + "\n";
}

Diagnosed<Unit> place(const ProvisionOptions& options) {
  auto devices = parseDevices(options.devices);
  if (!devices.ok()) return devices.error();
  std::vector<Wanted> wanted;
  for (const std::string& text : options.models) {
    auto one = wantedOf(text);
    if (!one.ok()) return one.error();
    wanted.push_back(*std::move(one));
  }
  SessionOptions session;
  for (const std::string& text : options.dims) {
    const size_t equals = text.rfind('=');
    int64_t size = 0;
    const char* const end = text.data() + text.size();
    const bool whole = equals != std::string::npos && std::from_chars(text.data() + equals + 1, end, size).ptr == end;
    if (!whole || size < 1)
      return Error{.code = Code::Usage, .message = fmt::format("--dim {}: expected NAME=N", aglow::quoted(text))};
    session.import.dims[text.substr(0, equals)] = size;
  }
  auto host = HostManager::create({.devices = *std::move(devices)});
  if (!host.ok()) return host.error();
  for (const Wanted& one : wanted) {
    PartitionRequest request{.parts = one.parts};
    if (!one.plan.empty()) {
      auto plan = readDevicePlan(one.plan);
      if (!plan.ok()) return plan.error();
      request.byHand = *std::move(plan);
    }
    auto added = addModel(**host, one.name, one.path, session, {.replicas = one.replicas}, std::move(request));
    if (!added.ok()) return added;
  }
  if (!options.dot.empty()) {
    const std::string text = drawDot((*host)->networks(), (*host)->statistics().devices);
    if (Status written = writeTogether([&](FileSet& files) { return files.add(options.dot, text); }); !written.ok())
      return written.error();
  }
  if (Status shown = printOut(options.json ? asJson(**host) : asText(**host)); !shown.ok()) return shown.error();
  return Unit{};
}

}  // namespace

Command provisionCommand() {
  auto options = std::make_shared<ProvisionOptions>();
  ProvisionOptions& o = *options;
  return {.name = "provision",
          .doc = "Put models on devices, and show what goes where or what is missing",
          .options = {{"--network,-n",
                       &o.models,
                       "NAME=FILE[,parts=N][,replicas=N][,plan=FILE.json], once for each",
                       "NETWORK",
                       {},
                       true},
                      {"--devices", &o.devices, "With spaces between; without it one of all cores", "LIST"},
                      {"--dim", &o.dims, "The size of a symbolic dimension", "NAME=N"},
                      {"--dot", &o.dot, "Draws the devices, for Graphviz", "FILE.dot"},
                      {"--json", &o.json, "For programs"}},
          .action = [options] { return finish(place(*options)); }};
}

}  // namespace aglow::cli
