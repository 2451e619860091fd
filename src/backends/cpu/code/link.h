// Linking of shared objects and programs with what the machine has: the C compiler, or LLVM's linker.
#pragma once

#include <span>
#include <string>

#include "support/error.h"

namespace aglow::codegen {

// The bytes of NAME.so from those of an object that exports NAME_info. Device error where no linker is there, or it
// fails.
Result<std::string> linkSharedObject(const std::string& object, const std::string& name, const std::string& triple,
                                     bool host);

// The bytes of a program that runs the bundle NAME, whose weights it holds: it reads and writes .npy files. Device
// error where there is no C compiler.
Result<std::string> linkProgram(const std::string& object, const std::string& name,
                                std::span<const std::span<const std::byte>> weights, const std::string& triple,
                                bool host);
// The source of that program after bundleTypes(), in which NAME stands for the bundle's name.
const char* programSource();

}  // namespace aglow::codegen
