// What is asked of quantization.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/module.h"
#include "quant/schema.h"

namespace aglow::quant {

using Names = std::set<std::string>;

// What can be computed with in place of the model's own floats: rows of one table.
struct Precision {
  std::string_view name, doc;
  // Changes a function, but for nodes and operators with these names; null where that takes a profile.
  Result<bool> (*apply)(Function& function, const Names& keepFloat);
  // Where activations are rounded: by how much of an output's largest magnitude two right runs may differ. What the
  // order of a sum costs in floats may become a whole step.
  double steps = 0;
};
std::span<const Precision> precisions();

// What is to become integers or narrower floats, and how.
struct Request {
  const Precision* precision = precisions().data();
  Profile profile = {};
  Calibration calibration = {};
  const Schema* schema = schemas().data();
  Names keepFloat = {};  // names of nodes and of operators
};

// A precision that needs no profile, by its name; Usage error with the names there are.
Result<std::shared_ptr<const Request>> requestOf(std::string_view precision, const std::vector<std::string>& keepFloat);
// What words ask for: names of a calibration and of a schema, or empty ones for the default.
Result<std::shared_ptr<const Request>> requestOf(Profile profile, std::string_view calibration, std::string_view schema,
                                                 const std::vector<std::string>& keepFloat);

}  // namespace aglow::quant
