// Type rule of resampling.
#include <fmt/format.h>

#include <cmath>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

Types resize(const InferContext& c) {
  const Type& x = c.type(0);
  const std::vector<int64_t>& sizes = c.attrs.ints("sizes");
  const std::vector<double>&scales = c.attrs.reals("scales"), &roi = c.attrs.reals("roi");
  AGLOW_OK(checkLength("sizes", sizes, x.rank()));
  AGLOW_OK(checkAtLeast("sizes", sizes, 0));
  if (static_cast<int>(scales.size()) != x.rank())
    return badNode(fmt::format("expected {} entries in 'scales', got {}", x.rank(), scales.size()));
  for (int axis = 0; axis < x.rank(); ++axis) {
    const double scale = scales[static_cast<size_t>(axis)];
    if (!(scale > 0) || !std::isfinite(scale))
      return badNode(fmt::format("expected scales that are positive, got {} along axis {}", scale, axis));
    if (x.dim(axis) == 0 && sizes[static_cast<size_t>(axis)] > 0)
      return badNode(fmt::format("expected elements along axis {} to resize, got {}", axis, x.text()));
  }
  const bool crops = c.attrs.word("coordinates") == "tf_crop_and_resize";
  if (crops ? static_cast<int>(roi.size()) != 2 * x.rank() : !roi.empty())
    return badNode(fmt::format("expected {} entries in 'roi', got {}", crops ? 2 * x.rank() : 0, roi.size()));
  for (const double edge : roi)
    if (!(std::abs(edge) <= 1e9)) return badNode(fmt::format("expected edges in 'roi' near x, got {}", edge));
  if (x.kind() == ElemKind::Bool && c.attrs.word("mode") != "nearest")
    return badNode(fmt::format("expected mode nearest for {}, got {}", x.text(), c.attrs.word("mode")));
  AGLOW_TRY(Shape shape, computedShape(sizes));
  return std::vector{x.withShape(std::move(shape))};
}

}  // namespace aglow::infer
