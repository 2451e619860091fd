// Types as objects of JSON: {"kind": "tensor", "elem": "f32", "shape": [1, "batch", null], "text": "f32[1,batch,?]"}. A
// size is a number, the name of what is open, or null where it has none; a shape of open rank is null. Sequences and
// optionals have "of", maps "key" and "of".
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "graph/interface.h"
#include "import/onnx/proto.h"
#include "tensor/type.h"

namespace aglow::cli {

nlohmann::ordered_json typeJson(const onnx::TypeProto& type);
nlohmann::ordered_json typeJson(const Type& type);
nlohmann::ordered_json typeJson(const Port& port);

}  // namespace aglow::cli
