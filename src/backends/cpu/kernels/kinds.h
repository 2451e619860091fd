// Functions of the library that are one template for several kinds of elements. Each gets its descriptor, addresses and
// units (abi.h), and how elements are loaded and stored.
#pragma once

#include "backends/cpu/kernels/abi.h"

#define AGLOW_KERNEL(NAME, DESC, D, ITEMS)                                                                  \
  extern "C" int32_t aglow_##NAME(const DESC* d, void* const* p, int64_t begin, int64_t end, Load<D>* load, \
                                  Store<D>* store) {                                                        \
    return ITEMS(d, p, begin, end, load, store);                                                            \
  }

#define AGLOW_KERNEL_OF_FLOATS(NAME, DESC, ITEMS)     \
  AGLOW_KERNEL(NAME##_f32, DESC, float, ITEMS<float>) \
  AGLOW_KERNEL(NAME##_f64, DESC, double, ITEMS<double>)
#define AGLOW_KERNEL_OF_KINDS(NAME, DESC, ITEMS) \
  AGLOW_KERNEL_OF_FLOATS(NAME, DESC, ITEMS)      \
  AGLOW_KERNEL(NAME##_i64, DESC, int64_t, ITEMS<int64_t>)

// With the kind that is computed in, and the vectors of f32 or as many bytes: ITEMS<loaded, computed, lanes>.
#define AGLOW_KERNEL_OF_LANES(NAME, DESC, ITEMS, W)                           \
  AGLOW_KERNEL(NAME##_f32_w##W, DESC, float, (ITEMS<float, float, W>))        \
  AGLOW_KERNEL(NAME##_f64_w##W, DESC, double, (ITEMS<double, double, W / 2>)) \
  AGLOW_KERNEL(NAME##_i32_w##W, DESC, int64_t, (ITEMS<int64_t, uint32_t, W>)) \
  AGLOW_KERNEL(NAME##_i64_w##W, DESC, int64_t, (ITEMS<int64_t, uint64_t, W / 2>))
#define AGLOW_KERNEL_OF_VECTORS(NAME, DESC, ITEMS) \
  AGLOW_KERNEL_OF_LANES(NAME, DESC, ITEMS, 4)      \
  AGLOW_KERNEL_OF_LANES(NAME, DESC, ITEMS, 8)      \
  AGLOW_KERNEL_OF_LANES(NAME, DESC, ITEMS, 16)
