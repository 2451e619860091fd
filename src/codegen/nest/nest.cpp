#include "codegen/nest/nest.h"

#include <algorithm>

namespace aglow::nest {

namespace {

int64_t product(std::span<const Axis> axes) {
  int64_t points = 1;
  for (const Axis& axis : axes) points *= axis.extent;
  return points;
}

}  // namespace

int Nest::innerAxes() const {
  const auto inRow = [](const Axis& axis) { return axis.role == Axis::Role::Row; };
  return std::max(1, static_cast<int>(std::count_if(axes.begin(), axes.end(), inRow)));
}

int64_t Nest::rowCount() const {
  return product(std::span(axes).first(axes.size() - static_cast<size_t>(innerAxes())));
}

int64_t Nest::rowLength() const { return product(std::span(axes).last(static_cast<size_t>(innerAxes()))); }

int64_t Nest::chunks() const {
  if (chunk == 0) return rowLength() == 0 ? 0 : 1;
  return (axes.back().extent + chunk - 1) / chunk;
}

int64_t Nest::units() const { return rowCount() * chunks(); }

}  // namespace aglow::nest
