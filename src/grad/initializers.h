// What variables are before the first step: values by name, from a generator of counters (graph/philox.h), so that a
// seed gives the same ones everywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grad/settings.h"
#include "tensor/tensor.h"

namespace aglow {

struct InitializerRow {
  std::string_view name;
  std::string_view doc;
  std::vector<Setting> settings;
};
std::vector<InitializerRow> initializers();

struct Initializer {
  std::string name = "xavier";  // a row, or file
  GivenSettings settings = {};
  std::string path = {};     // file: of the .npy
  bool inputsFirst = false;  // whether weights are [inputs, outputs, taps...]
};

// "he", "he:gain=0.5", or the path of a file that ends with .npy.
Result<Initializer> parseInitializer(const std::string& text);
// Whether a variable of this type is large enough for it: those that look at inputs and outputs need weights.
bool isFor(const Initializer& how, const Type& type);

// A tensor of this type for a variable of this name: the seed and the name decide which. Usage names rows, settings and
// types that do not fit.
Result<Tensor> initialTensor(const Type& type, const Initializer& how, std::string_view variable, uint64_t seed);

}  // namespace aglow
