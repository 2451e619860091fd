// What handlers of Caffe2's operators share: arguments as Caffe2 reads them, axis orders, rows of the domain.
#pragma once

#include <string>
#include <vector>

#include "import/caffe2/net.h"
#include "import/onnx/op_import.h"
#include "import/onnx/op_support.h"

namespace aglow::caffe2 {

using onnx::Attribute;
using onnx::AttributeType;
using onnx::Handler;
using onnx::Imported;
using onnx::iota;
using onnx::listText;
using onnx::OpImport;
using onnx::OpRow;
using onnx::product;
using onnx::range;
using onnx::shapeOf;
using onnx::sliced;
using onnx::unsqueezed;

constexpr OpRow row(std::string_view name, Handler* handler) {
  return {.name = name, .handler = handler, .domain = kDomain};
}

// Single values; whole numbers count as real ones. BadNode when the argument is there and of another form, or when it
// is missing and has no default.
int64_t intArg(const OpImport& c, std::string_view name, std::optional<int64_t> otherwise = std::nullopt);
double realArg(const OpImport& c, std::string_view name, std::optional<double> otherwise = std::nullopt);
bool flag(const OpImport& c, std::string_view name, bool otherwise = false);
std::string wordArg(const OpImport& c, std::string_view name, const std::string& otherwise);
// Lists; empty when the argument is missing.
std::vector<int64_t> intsArg(const OpImport& c, std::string_view name);
std::vector<double> realsArg(const OpImport& c, std::string_view name);
// A TensorProto.DataType by number or name.
ElemKind kindArg(const OpImport& c, std::string_view name, std::optional<ElemKind> otherwise = std::nullopt);

// Whether argument "order" says that channels are the last axis.
bool channelsLast(const OpImport& c);
// From that order to [batch, channel, spatial...] and back; the values themselves in the other order.
Value channelsFirst(const OpImport& c, Value x);
Value orderedAsSaid(const OpImport& c, Value x);

// The value with its axes from `axis` on as one, and those before as another.
Value asMatrix(Builder& b, Value x, int64_t axis);
// An operand of integers that index, as i64.
Value indices(const OpImport& c, int operand);
// Ends the import of the node unless the value is a vector.
void checkVector(Value x, std::string_view what);

}  // namespace aglow::caffe2
