// Which nodes have a standard form in ONNX, and that form.
#pragma once

#include "graph/node.h"
#include "import/onnx/proto.h"

namespace aglow::onnx {

inline constexpr int64_t kExportOpset = 24;

// What a standard form needs of the model around it.
class ExportScope {
public:
  virtual ~ExportScope() = default;
  // The name of a value; empty for an absent one.
  virtual std::string nameOf(Value v) const = 0;
  // The name of a new initializer.
  virtual std::string initializer(std::string_view hint, const Tensor& tensor) = 0;
};

// Operator, inputs, outputs and attributes of the standard form; false when there is none. Import makes the same of it.
bool writeStandard(const aglow::Node& node, ExportScope& scope, Node& out);

}  // namespace aglow::onnx
