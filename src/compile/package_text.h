// The description of a package as text: for which processor its code is, and what its functions take and give.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/interface.h"
#include "support/error.h"

namespace aglow {

struct PackageText {
  std::string triple, cpu;
  std::vector<std::string> features;  // beyond the triple's base, by LLVM's names
  std::vector<Interface> interfaces;
};

// UnsupportedFeature for ports whose numbers stand for something else.
Result<std::string> printPackage(const PackageText& package);
// BadText with line and column.
Result<PackageText> parsePackage(std::string_view text);

}  // namespace aglow
