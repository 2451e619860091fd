// Files that are complete get their names: all of them, or none. A process of its own does it, which goes on where this
// one is killed meanwhile, so that only the loss of the machine can come in between.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace aglow {

struct NewName {
  std::string path;
  std::string from;       // what the file is called now, or where the system shows one without a name
  std::string temporary;  // a free name in the same folder, for a file without a name on its way
  std::string former;     // another, for what is at the path until all is done
  bool isNameless = false;
};

struct NamingFault {
  size_t file = 0;
  int number = 0;  // errno's value
};

// On a fault everything is as it was before.
std::optional<NamingFault> giveNames(std::span<const NewName> files);

}  // namespace aglow
