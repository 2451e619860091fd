// The two phases of quantization by profile, each over the optimized graph: values are watched while samples run; then
// the graph is made again with conversions to integers around what the profile has ranges for.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/module.h"
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

// An output for each value that quantization asks a profile about.
struct Watched {
  std::string name;
  Value value;
  Placeholder* output = nullptr;
};
std::vector<Watched> watchValues(Function& function);

// Puts QuantizeLinear and DequantizeLinear after values, and DequantizeLinear after weights that are integers: the form
// of model files that come quantized. False where nothing in the function can be quantized. Usage error where the
// profile is of another model, or a name to keep is unknown.
Result<bool> quantize(Function& function, const Request& request);

}  // namespace aglow::quant
