// The builder methods for Python.
#pragma once

#include <string>

namespace aglow {

// A module of Python with one typed, documented method per operator, mixed into aglow.Builder.
std::string pythonBuilders();

}  // namespace aglow
