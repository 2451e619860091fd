// Channels of one size: a product gives each channel divided by a factor, those that take it multiply by the same, and
// one scale for all channels serves each of them. Where floats give the channels, a multiplication divides them.
#pragma once

#include "quant/islands.h"
#include "quant/profile.h"
#include "quant/schema.h"

namespace aglow::quant {

// Changes weights and biases of the function, which computes the same, and what the profile says of the values between
// them; a value that is multiplied takes the place of the one before it. False where no channels are worth it.
bool equalize(Function& function, Islands& islands, Profile& profile);

}  // namespace aglow::quant
