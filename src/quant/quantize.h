// The second phase of quantization by profile: the graph that samples ran on is made again with conversions to integers
// around what the profile has ranges for.
#pragma once

#include "quant/choose.h"

namespace aglow::quant {

// Why a backend computes a product in floats; empty where it takes integers.
using Veto = std::function<std::string(const Node& product)>;
struct Vetoed {
  std::string name;
  std::string_view op;
  std::string reason;
};

// A function on its way to integers, pass by pass. What is done so far shows in the function.
class Quantization {
public:
  // Usage error where the profile is of another model, or a name to keep is unknown.
  static Result<Quantization> create(Function& function, const Request& request, const Veto& veto = {});

  // The passes, in order, each false where it changes nothing. The first computes the same in floats; the second takes
  // from biases what the rounding of weights will add to their columns on average.
  bool equalize();
  bool correctBias();
  // Puts QuantizeLinear and DequantizeLinear after values, and DequantizeLinear after weights that are integers: the
  // form of model files that come quantized.
  Result<bool> insertConversions();

  // What the profile says of values as they are now, and what becomes of each.
  const Profile& profile() const { return profile_; }
  const Islands& islands() const { return islands_; }
  const Schema& schema() const { return *request_->schema; }
  // What the rounding of a product's weights adds to its columns; empty where that is not known.
  std::vector<double> biasErrors(const Node& product) const;
  const Chosen& chosen() const { return chosen_; }
  // Products that stay in floats though nobody asked for it.
  const std::vector<Vetoed>& vetoed() const { return vetoed_; }

private:
  Quantization(Function& function, const Request& request, std::vector<Vetoed> vetoed);

  Function* function_;
  const Request* request_;
  Islands islands_;
  Profile profile_;
  Chosen chosen_;
  std::vector<Vetoed> vetoed_;
};

inline constexpr std::string_view kEqualize = "equalize", kCorrectBias = "correct-bias";
// All passes but those that are disabled. False where nothing in the function can be quantized.
Result<bool> quantize(Function& function, const Request& request,
                      const std::set<std::string, std::less<>>& disabled = {});

}  // namespace aglow::quant
