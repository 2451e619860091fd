// Strings and maps live on the host, between compiled parts: nodes that take or give them are left to the runtime, and
// a whole model that needs such a node cannot be compiled.
#pragma once

#include "import/onnx/proto.h"
#include "tensor/map_value.h"

namespace aglow::onnx {

// Whether the node gives strings whatever it takes.
bool makesStrings(const Node& node);
// Whether it gives strings, or its operator takes or gives nothing but strings and maps.
bool worksOnHost(const Node& node);
// Why strings and maps cannot be compiled.
Error needsRuntime();

// Whether values of a type are maps, or sequences of them.
bool holdsMaps(const TypeProto& type);

// What ZipMap's attributes name its columns, and the table [rows, columns] that it makes of numbers of a type.
Result<MapKeys> zipMapKeys(const std::vector<std::string>& words, const std::vector<int64_t>& numbers);
Result<Shape> zipMapShape(const Type& type, const MapKeys& keys);

}  // namespace aglow::onnx
