// A bundle as portable C: NAME.c, which any C99 compiler takes.
#pragma once

#include <string>

#include "backends/cpu/bundle/bundle.h"
#include "codegen/clike/launch.h"

namespace aglow::csource {

// The text of NAME.c; its header is that of any bundle.
std::string bundleSource(const codegen::Bundle& bundle, const codegen::DeviceShape& shape);

// What stands before the kernels of all of them.
std::string prelude();
const char* hashText();  // of the weights

}  // namespace aglow::csource
