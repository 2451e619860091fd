// Names of models and tensors, which may be any bytes, as C identifiers, strings and inside of C comments.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

namespace aglow::codegen {

// Letters, digits and underscores; no keyword of C or C++, no function that generated code may need; at most 64 bytes.
std::string cIdentifier(std::string_view name);
// The same for a bundle: with what stands after it, it is also no name that its C files use, of C's and the system's
// libraries, of OpenCL, of kernels, or of their own, which begin with aglow_.
std::string bundleName(std::string_view name);
// Whether a function of a bundle may have this name.
bool isFreeName(std::string_view text);
std::string upperCase(std::string text);
// The identifier, or with a number after it where one of the names that begin with it is taken: those with the given
// endings. All of them are taken then.
std::string uniqueName(const std::string& identifier, std::set<std::string>& taken,
                       std::span<const std::string_view> endings);

// A string of these bytes, in quotes.
std::string cString(std::string_view bytes);
// Printable, and unable to end a comment.
std::string commentText(std::string_view name);

}  // namespace aglow::codegen
