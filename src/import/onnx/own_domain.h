// The domain "ai.aglow": every operator of the records as an ONNX node, written and read by one mechanism. Operands and
// results stand in the record's order, attributes have the record's names; those left out have their defaults. Element
// kinds are words ("f32"); numbers that no float holds are tensors of kind f64. A node with a predicate has it as its
// last input and says so with the attribute "_predicate".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node.h"
#include "import/onnx/proto.h"

namespace aglow::onnx {

inline constexpr std::string_view kOwnDomain = "ai.aglow";
inline constexpr int64_t kOwnVersion = 1;
inline constexpr std::string_view kPredicateAttribute = "_predicate";

// The attributes of a node that differ from their defaults. `keep` owns what tensors need.
std::vector<Attribute> ownAttributes(const Attrs& attrs, std::vector<std::shared_ptr<const void>>& keep);

// The exact value as a float attribute, or nothing when a float does not hold it.
std::optional<float> exactFloat(double value);

// The key of the model's metadata under which an input or initializer of a quantized type has that type in full.
std::string quantizedTypeKey(std::string_view name);
// The type in full of an input or initializer that the model declares as `plain`; BadGraph when the two do not fit.
Result<Type> fullType(const Model& model, std::string_view name, const Type& plain);

}  // namespace aglow::onnx
