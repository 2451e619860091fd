// Values of a model as tensors of the C interface: strings are addresses, a map is its keys and its values.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aglow/aglow.h"
#include "graph/model_value.h"
#include "import/onnx/proto.h"

namespace aglow {

// A tensor with all that its description points at; it stays where it is.
class NamedTensor {
public:
  NamedTensor(std::string name, MapColumn elements);
  NamedTensor(const NamedTensor&) = delete;
  NamedTensor& operator=(const NamedTensor&) = delete;

  const aglow_tensor& described() const { return described_; }

private:
  void describe(aglow_kind kind, const Shape& shape, const void* data);

  std::string name_;
  MapColumn elements_;
  std::vector<const char*> words_;
  aglow_tensor described_ = {};
};

// Keys or labels under a name.
std::unique_ptr<NamedTensor> labelsOf(std::string name, const MapKeys& labels);

// What the caller gives for a session's inputs, which keeps it until the run is over.
Result<std::map<std::string, ModelValue>> inputsOf(const onnx::Graph& graph, const aglow_tensor* given, size_t count);
// Adds the tensors that an output is given as.
Status addResults(const onnx::ValueInfo& declared, const ModelValue& value, std::deque<NamedTensor>& results);

}  // namespace aglow
