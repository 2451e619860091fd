// The fields are those of onnx.proto from IR version 11 on; they are read by themselves, because nothing else asks for
// them.
#include "import/onnx/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "import/wire/wire.h"
#include "support/quote.h"

namespace aglow::onnx {

namespace {

struct Configuration {
  std::string name;
  int64_t devices = 0;
  std::vector<std::string> names;
};

struct Sharding {
  std::string tensor;
  std::vector<int64_t> devices;
  bool cut = false;  // in more than one piece
};

struct NodePlan {
  std::string configuration;
  std::optional<int64_t> stage;
  std::vector<Sharding> shardings;
};

struct AnnotatedNode {
  std::string name;
  std::vector<NodePlan> plans;
};

Configuration readConfiguration(wire::Reader reader) {
  Configuration all;
  while (reader.next()) {
    if (reader.field() == 1) all.name = reader.text();
    if (reader.field() == 2) all.devices = reader.integer();
    if (reader.field() == 3) all.names.push_back(reader.text());
  }
  return all;
}

Sharding readSharding(wire::Reader reader) {
  Sharding all;
  while (reader.next()) {
    if (reader.field() == 1) all.tensor = reader.text();
    if (reader.field() == 2) reader.appendTo(all.devices);
    if (reader.field() != 4) continue;
    wire::Reader dim = reader.message("ShardedDimProto");
    while (dim.next()) {
      if (dim.field() != 2) continue;
      wire::Reader simple = dim.message("SimpleShardedDimProto");
      while (simple.next())
        if (simple.field() == 3 && simple.integer() > 1) all.cut = true;
    }
  }
  return all;
}

NodePlan readPlan(wire::Reader reader) {
  NodePlan plan;
  while (reader.next()) {
    if (reader.field() == 1) plan.configuration = reader.text();
    if (reader.field() == 2) plan.shardings.push_back(readSharding(reader.message("ShardingSpecProto")));
    if (reader.field() == 3) plan.stage = reader.integer();
  }
  return plan;
}

AnnotatedNode readNode(wire::Reader reader) {
  AnnotatedNode node;
  std::string output;
  while (reader.next()) {
    if (reader.field() == 2 && output.empty()) output = reader.text();
    if (reader.field() == 3) node.name = reader.text();
    if (reader.field() == 10) node.plans.push_back(readPlan(reader.message("NodeDeviceConfigurationProto")));
  }
  if (node.name.empty()) node.name = output;
  return node;
}

// Where the node is in a plan; nothing where the plan does not say.
Result<std::optional<int64_t>> placeOf(const AnnotatedNode& node, const NodePlan& plan) {
  if (plan.stage) return plan.stage;
  std::optional<int64_t> device;
  for (const Sharding& sharding : plan.shardings) {
    const bool whole = !sharding.cut && sharding.devices.size() == 1;
    if (!whole || (device && *device != sharding.devices.front()))
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("tensor {} is shared out among devices; each node has to be on one of them, "
                                          "or in a pipeline stage",
                                          quoted(sharding.tensor)),
                   .where = fmt::format("node {}", quoted(node.name))};
    device = sharding.devices.front();
  }
  return device;
}

}  // namespace

Result<DevicePlan> readDevicePlan(const SharedBytes& file, const std::string& configuration) {
  std::vector<Configuration> configurations;
  std::vector<AnnotatedNode> nodes;
  AGLOW_OK(wire::parse(file, "ModelProto", [&](wire::Reader model) {
    while (model.next()) {
      if (model.field() == 26) configurations.push_back(readConfiguration(model.message("DeviceConfigurationProto")));
      if (model.field() != 7) continue;
      wire::Reader graph = model.message("GraphProto");
      while (graph.next())
        if (graph.field() == 1)
          if (AnnotatedNode node = readNode(graph.message("NodeProto")); !node.plans.empty())
            nodes.push_back(std::move(node));
    }
  }));
  const auto found = std::find_if(configurations.begin(), configurations.end(), [&](const Configuration& one) {
    return configuration.empty() || one.name == configuration;
  });
  if (found == configurations.end()) {
    std::string names;
    for (const Configuration& one : configurations)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", quoted(one.name));
    return Error{.code = Code::Usage,
                 .message = configurations.empty() ? std::string("the model has no configuration of devices")
                                                   : fmt::format("the model has no configuration {}; it has {}",
                                                                 quoted(configuration), names)};
  }
  DevicePlan plan{.configuration = found->name, .devices = 0, .names = found->names, .at = {}};
  for (const AnnotatedNode& node : nodes)
    for (const NodePlan& one : node.plans) {
      if (one.configuration != found->name) continue;
      AGLOW_TRY(const std::optional<int64_t> place, placeOf(node, one));
      if (!place) continue;
      if (*place < 0 || (found->devices > 0 && *place >= found->devices))
        return Error{.code = Code::BadGraph,
                     .message = fmt::format("device or stage {} is not among the {} of configuration {}", *place,
                                            found->devices, quoted(found->name)),
                     .where = fmt::format("node {}", quoted(node.name))};
      plan.at[node.name] = static_cast<size_t>(*place);
      plan.devices = std::max(plan.devices, static_cast<size_t>(*place) + 1);
    }
  return plan;
}

}  // namespace aglow::onnx
