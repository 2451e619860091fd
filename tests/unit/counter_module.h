// A module with two functions over one state, for tests of all that handles several.
#pragma once

namespace aglow::testing_support {

inline constexpr const char* kCounter = R"(module {
  state @count : f32[2] = [1, 2]
  placeholder @step : f32[2]
  placeholder @total : f32[2]
  constant @zero : f32[2] = [0, 0]
  func @add {
    %sum = Add(@count, @step)
    Save(%sum, @count)
    Save(%sum, @total)
  }
  func @reset {
    Save(@zero, @count)
  }
})";

}  // namespace aglow::testing_support
