// Indices in kernels: those below zero count from the end of the axis.
#pragma once

#include "backends/cpu/kernels/index/cpu_desc.h"

namespace aglow::cpu {

// The place that an index names, or -1 where that lies outside of the axis.
[[gnu::always_inline]] inline int64_t placeOf(const IndexDesc& indices, const void* base, int64_t i) {
  const int64_t index =
      indices.bytes == 4 ? static_cast<const int32_t*>(base)[i] : static_cast<const int64_t*>(base)[i];
  const int64_t place = index < 0 ? index + indices.extent : index;
  return place >= 0 && place < indices.extent ? place : -1;
}

}  // namespace aglow::cpu
