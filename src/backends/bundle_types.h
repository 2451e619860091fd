// What C files that describe a bundle declare.
#pragma once

namespace aglow {

// The structures of include/aglow/bundle.h, in C.
const char* bundleTypes();

}  // namespace aglow
