// Protobuf's text form of a NetDef, turned into the binary form, so that one reader knows what a net is.
#pragma once

#include <string>
#include <string_view>

#include "support/error.h"

namespace aglow::caffe2 {

// The net's binary form; BadFile, with the line, when the text is not a NetDef.
Result<std::string> toWire(std::string_view text);

// Whether the text opens with a field of NetDef, past space and comments.
bool looksLikeNetText(std::string_view text);

}  // namespace aglow::caffe2
