// The transforms of WinogradConv: tiles of `tile` x `tile` results y of a 3x3 window w over x, as
//   y = A' ((G w G') * (B' x B)) A     (' transposes, * multiplies element by element)
// with interpolation at 0, 1, -1 and infinity and, for tiles of 4, also at 2 and -2.
#pragma once

#include <cstdint>

namespace aglow::winograd {

template <int kTile>
struct Transform;

template <>
struct Transform<2> {
  static constexpr double kInput[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};  // B'
  static constexpr double kFilter[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};   // G
  static constexpr double kOutput[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};                              // A'
};

template <>
struct Transform<4> {
  static constexpr double kInput[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                                          {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  static constexpr double kFilter[6][3] = {{1.0 / 4, 0, 0},
                                           {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                           {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                           {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                           {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                           {0, 0, 1}};
  static constexpr double kOutput[4][6] = {
      {1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};
};

// out = m in m', for a matrix m of kRows x kCols; `in` and `out` are stored row by row.
template <int kRows, int kCols>
void transform2d(const double (&m)[kRows][kCols], const double* in, double* out) {
  double half[kRows][kCols] = {};
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < kCols; ++k)
      for (int c = 0; c < kCols; ++c) half[r][c] += m[r][k] * in[k * kCols + c];
  for (int r = 0; r < kRows; ++r)
    for (int c = 0; c < kRows; ++c) {
      double sum = 0;
      for (int k = 0; k < kCols; ++k) sum += half[r][k] * m[c][k];
      out[r * kRows + c] = sum;
    }
}

}  // namespace aglow::winograd
