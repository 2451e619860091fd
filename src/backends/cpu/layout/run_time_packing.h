// Weights that are not known when compiling, as those that train, in the order in which kernels read them: the same as
// gemm/pack.h gives, as nodes.
#pragma once

#include "graph/builder.h"

namespace aglow {

// [k, n] to [P, k, panel], P = ceil(n / panel).
Value packMatrixAtRunTime(Builder& b, Value matrix, int64_t panel);
// [O, C / group, kh, kw] to [P, kh, kw, C / group, panel], P = ceil(O / panel).
Value packFilterAtRunTime(Builder& b, Value filter, int64_t panel);
// [P, kh, kw, C, panel] to [O, C, kh, kw].
Value unpackSums(Builder& b, Value packed, int64_t outputs);

// [O, C, 3, 3], transformed for tiles of tile x tile results, to [(tile + 2)^2, P, C, panel].
Value transformAtRunTime(Builder& b, Value filter, int tile, int64_t panel);

}  // namespace aglow
