// Resampling of images and other grids.
#pragma once

#include "ops/kind_sets.h"
#include "ops/onnx_kinds.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OpDef kResize[] = {
    {.name = "Resize",
     .doc = "x resampled to other extents, each axis by itself: the nearest element, or a weighted mean of those "
            "around the place that an element of the result has in x.",
     .kind = OpKind::Composite,
     .in = {{"x", kinds::plain, 'T'}},
     .attrs = {{.name = "sizes", .kind = AttrKind::Ints, .doc = "extents of the result"},
               {.name = "scales", .kind = AttrKind::Floats, .doc = "of each axis"},
               {.name = "mode", .kind = AttrKind::Enum, .choices = "nearest|linear|cubic"},
               {.name = "coordinates",
                .kind = AttrKind::Enum,
                .choices = "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|"
                           "tf_half_pixel_for_nn|tf_crop_and_resize",
                .doc = "how an index of the result becomes a place in x"},
               {.name = "nearest_mode",
                .kind = AttrKind::Enum,
                .choices = "round_prefer_floor|round_prefer_ceil|floor|ceil"},
               {"cubic_coeff_a", AttrKind::Float, -0.75},
               {.name = "exclude_outside", .kind = AttrKind::Bool, .doc = "places outside of x have no weight"},
               {.name = "antialias", .kind = AttrKind::Bool, .doc = "the mean widens where x shrinks"},
               {.name = "roi",
                .kind = AttrKind::Floats,
                .doc = "starts, then ends, as shares of x, for tf_crop_and_resize"},
               {.name = "extrapolation_value", .kind = AttrKind::Float, .doc = "outside of x, for tf_crop_and_resize"}},
     .infer = infer::resize,
     .standard = {"Resize", onnx_kinds::elements, "resize"},
     .gradient = GradientBy::Lowering},
};

}  // namespace aglow::records
