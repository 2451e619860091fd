// Which constants of a model can train, and which of them are asked for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "graph/module.h"
#include "import/onnx/proto.h"

namespace aglow {

// Constants of a model by name: floats that gradient descent may change, in the model's order. Single numbers (an
// epsilon, the root of a size) are no parameters as a rule, and have to be named.
std::vector<std::string> trainableNames(const onnx::Model& model);
std::vector<std::string> trainableNames(const Module& module);

struct ChosenVariables {
  std::set<std::string> names;
  std::set<std::string> byName;  // those of them that were named in full: none of these may be left out silently
};

// Patterns: a name; letters with * and ? for any others; `all`; and with ! before it, what not to take. A name may also
// be one of `others`. Usage names all patterns that fit nothing, with the nearest name.
Result<ChosenVariables> chooseVariables(const std::vector<std::string>& patterns,
                                        const std::vector<std::string>& trainable,
                                        const std::vector<std::string>& others = {});

}  // namespace aglow
