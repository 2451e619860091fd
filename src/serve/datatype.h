// The element kinds that the Open Inference Protocol knows, under the names it has for them.
#pragma once

#include <optional>
#include <string_view>

#include "tensor/elem_kind.h"

namespace aglow::serve {

// Strings of any bytes.
inline constexpr std::string_view kBytes = "BYTES";

// "FP32"; of a quantized kind that of its integers. None for what the protocol has no name for.
std::optional<std::string_view> datatypeOf(ElemKind kind);
std::optional<ElemKind> kindOf(std::string_view datatype);

}  // namespace aglow::serve
