// stdin where a file is expected: what `-` stands for.
#pragma once

#include <string>

#include "support/error.h"

namespace aglow::cli {

inline constexpr std::string_view kStandardStream = "-";

// The path of a file with all that stdin holds, which goes with the program; its name ends with what the first bytes
// say it is (.npy, .npz, .aglow, .graph, .ir, or else .onnx). Other paths are themselves. Usage error where a second
// option asks for stdin.
Result<std::string> inputPath(const std::string& path);

// A text for the user, in which that file is called <stdin>: its path tells nobody anything.
std::string withStdinNamed(std::string text);

}  // namespace aglow::cli
