// What handlers of the domain com.microsoft share: how its operators are expressed by standard ones.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/op_import.h"

namespace aglow::onnx {

inline constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr OpRow microsoft(std::string_view name, Handler* handler) {
  return {.name = name, .handler = handler, .domain = kMicrosoft};
}

Attribute intAttribute(std::string_view name, int64_t value);
Attribute floatAttribute(std::string_view name, double value);

// A node of the standard domain with the name, outputs and attributes of this one.
Node standardNode(const OpImport& c, std::string_view opType);
// The first result of a standard operator with these operands (empty ones are left out) and this node's attributes.
Value standardValue(OpImport& c, std::string_view opType, int64_t opset, std::initializer_list<Value> operands);

// Between [batch, spatial..., channel] and [batch, channel, spatial...].
Value channelsFirst(Builder& b, Value x);
Value channelsLast(Builder& b, Value x);

// The functions that are fused into products, by their standard names in any of the forms that nodes have: attributes
// alpha, beta and gamma, or a list of parameters.
Value activated(OpImport& c, Value x);

// The last axis of x as `count` pieces of equal length, in order; BadNode when it does not divide.
std::vector<Value> splitLast(Builder& b, Value x, int64_t count);

}  // namespace aglow::onnx
