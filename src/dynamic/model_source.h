// Models of any kind of file as networks for a host.
#pragma once

#include <memory>
#include <string>

#include "dynamic/session.h"
#include "runtime/host.h"
#include "runtime/partition.h"
#include "runtime/parts.h"

namespace aglow {

// How a model's declarations look to a host.
NetworkSpec specOf(const onnx::Graph& graph);

// A model of whatever sizes come, as one part; each device has a session of its own.
std::shared_ptr<const NetworkSource> sourceOf(onnx::Model model, SessionOptions options);

// A model file: ONNX or a Caffe2 net, a text form (.graph, .ir) or a package (.aglow). Of the options, backend and
// threads are the device's.
Diagnosed<std::shared_ptr<const NetworkSource>> openSource(const std::string& path, SessionOptions options);

// The same cut into parts. NeedShape or DynamicShape for a model that is not compiled whole.
Diagnosed<std::shared_ptr<const NetworkSource>> openParts(const std::string& path, SessionOptions options,
                                                          const PartitionRequest& request);

// Puts a model file on a host: whole, or, where the request asks for parts or no device has room for it, cut for the
// devices that it may go to.
Diagnosed<Unit> addModel(HostManager& host, const std::string& name, const std::string& path,
                         const SessionOptions& options, const NetworkOptions& network, PartitionRequest request = {});

}  // namespace aglow
