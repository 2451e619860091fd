// Packages for tests of the public interface, whose names are also those of the library's own types.
#pragma once

#include <string>

namespace aglow::testing_support {

// The package of a graph, for a processor by its name; empty: this one.
void writePackage(const std::string& path, const char* graph, const std::string& cpu = {});
bool runsHere(const std::string& path);
std::string ownPackageVersion();

}  // namespace aglow::testing_support
