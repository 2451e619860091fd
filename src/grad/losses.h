// Losses by name: what a function gives, compared with what is wanted, as one number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grad/settings.h"
#include "graph/builder.h"

namespace aglow {

struct LossRow {
  std::string_view name;
  std::string_view doc;
  std::vector<Setting> settings;
  bool takesLabels = false;  // whether targets are the numbers of classes, one for each row of scores
};
std::vector<LossRow> losses();

struct Loss {
  std::string name = "softmax-cross-entropy";
  std::string output = {};  // of the function; empty: its first
  GivenSettings settings = {};
};

// What addLoss added: placeholders by name.
struct AddedLoss {
  std::string output;   // what is compared
  std::string target;   // input: what is wanted; labels are i64
  std::string weights;  // input, f32[batch]: the share of each sample. 0 for one that only fills up the batch
  std::string loss;     // output, f32[]: the sum of all samples' losses times their weights
  int64_t classes = 0;  // labels lie below it; 0: targets are no labels
  int64_t axis = 0;     // of the output: that of the classes
};

// The loss of one sample is the mean over all that the output has for it, along its first axis. Scores are compared
// before a Softmax or Sigmoid that ends the function. Usage names losses, settings and outputs that are not there.
Result<AddedLoss> addLoss(Function& function, const Loss& loss);

// What the function saves as an output of this name; empty when it does not.
Value savedAs(const Function& function, const std::string& output);

}  // namespace aglow
