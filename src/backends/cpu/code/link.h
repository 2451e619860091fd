// Linking of shared objects with what the machine has: the C compiler, or LLVM's linker.
#pragma once

#include <string>

#include "support/error.h"

namespace aglow::codegen {

// The bytes of NAME.so from those of an object that exports NAME_info. Device error where no linker is there, or it
// fails.
Result<std::string> linkSharedObject(const std::string& object, const std::string& name, const std::string& triple,
                                     bool host);

}  // namespace aglow::codegen
