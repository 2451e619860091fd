// What a run of the C interface gave.
#pragma once

#include <deque>

#include "api/tensors.h"

struct aglow_results {
  std::deque<aglow::NamedTensor> tensors;
};
