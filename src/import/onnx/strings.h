// Strings live at run time, between compiled parts: nodes that take or give them are left to the runtime, and a whole
// model that has some cannot be compiled.
#pragma once

#include "import/onnx/proto.h"

namespace aglow::onnx {

// Whether the node gives strings whatever it takes.
bool makesStrings(const Node& node);
// Whether it gives strings, or its operator takes nothing else.
bool worksOnStrings(const Node& node);
// Why strings cannot be compiled.
Error stringsNeedRuntime();

}  // namespace aglow::onnx
