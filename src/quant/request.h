// What is asked of quantization.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "quant/schema.h"

namespace aglow::quant {

// What is to become integers, and how.
struct Request {
  Profile profile;
  Calibration calibration = {};
  const Schema* schema = schemas().data();
  std::set<std::string> keepFloat = {};  // names of nodes and of operators
};

// What words ask for: names of a calibration and of a schema, or empty ones for the default.
Result<std::shared_ptr<const Request>> requestOf(Profile profile, std::string_view calibration, std::string_view schema,
                                                 const std::vector<std::string>& keepFloat);

}  // namespace aglow::quant
