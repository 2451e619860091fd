// How each value of the islands becomes integers: what a profile, a calibration and a schema make of it.
#pragma once

#include "quant/islands.h"
#include "quant/request.h"

namespace aglow::quant {

// Usage error where a name to keep is neither that of a node nor of an operator that could be quantized.
Status checkKept(const Function& function, const Names& kept);
// Usage error where the profile is of another model, or a name to keep is unknown.
Status checkRequest(const Function& function, const Islands& islands, const Request& request);

class Chosen {
public:
  // Usage error where the profile lacks a value.
  static Result<Chosen> create(const Islands& islands, const Profile& profile, const Request& request);

  // Null for values that stay floats.
  const Parameters* find(Value value) const;

private:
  std::unordered_map<Value, Parameters, ValueHash> byValue_;
};

}  // namespace aglow::quant
