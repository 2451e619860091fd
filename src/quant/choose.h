// How each value of the islands becomes integers: what a profile, a calibration and a schema make of it.
#pragma once

#include "quant/islands.h"
#include "quant/quantize.h"

namespace aglow::quant {

class Chosen {
public:
  // Usage error where the profile is of another model, or a name to keep is unknown.
  static Result<Chosen> create(const Function& function, const Islands& islands, const Request& request);

  // Null for values that stay floats.
  const Parameters* find(Value value) const;

private:
  std::unordered_map<Value, Parameters, ValueHash> byValue_;
};

}  // namespace aglow::quant
