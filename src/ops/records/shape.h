// Operators that move, repeat or reinterpret elements without computing on them.
#pragma once

#include "ops/kind_sets.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OpDef kShape[] = {
    {.name = "Cast",
     .doc = "x converted to another element kind: floats truncate towards zero and saturate, integers wrap, bool is "
            "'not zero'.",
     .in = {{"x", kinds::plain}},
     .attrs = {{"to", AttrKind::Elem},
               {.name = "saturate",
                .kind = AttrKind::Bool,
                .number = 1,
                .doc = "narrow floats clamp instead of overflowing"},
               {.name = "rounding",
                .kind = AttrKind::Enum,
                .choices = "nearest|up|down",
                .doc = "of f8e8m0, which has powers of two alone"}},
     .infer = infer::cast},
    {.name = "Bitcast",
     .doc = "The same bits under another element kind of the same width.",
     .kind = OpKind::View,
     .in = {{"x", kinds::plain}},
     .attrs = {{"to", AttrKind::Elem}},
     .infer = infer::bitcast},
    {.name = "Splat",
     .doc = "One value at every element.",
     .attrs = {{"value", AttrKind::Float}, {"elem", AttrKind::Elem}, {"shape", AttrKind::Ints}},
     .infer = infer::splat},
    {.name = "Reshape",
     .doc = "The same elements under another shape.",
     .kind = OpKind::View,
     .in = {{"x", kinds::any, 'T'}},
     .attrs = {{"shape", AttrKind::Ints}},
     .infer = infer::reshape},
    {.name = "Transpose",
     .doc = "Axes in another order: result axis i is axis perm[i] of x.",
     .in = {{"x", kinds::any, 'T'}},
     .attrs = {{"perm", AttrKind::Ints}},
     .infer = infer::transpose},
    {.name = "Slice",
     .doc = "Along axis i, the elements starts[i] + j * steps[i] for j below sizes[i]. Steps may be negative.",
     .in = {{"x", kinds::any, 'T'}},
     .attrs = {{"starts", AttrKind::Ints},
               {"sizes", AttrKind::Ints},
               {.name = "steps", .kind = AttrKind::Ints, .doc = "all 1 if empty"}},
     .infer = infer::slice},
    {.name = "Concat",
     .doc = "The operands one behind the other along an axis.",
     .in = {{"x", kinds::any, 'T', Arity::Variadic}},
     .attrs = {{"axis", AttrKind::Int}},
     .infer = infer::concat},
    {.name = "Pad",
     .doc = "x with a value around it: before[i] elements in front of axis i, after[i] behind it.",
     .in = {{"x", kinds::plain, 'T'}, {"value", kinds::plain, 'T'}},
     .attrs = {{"before", AttrKind::Ints}, {"after", AttrKind::Ints}},
     .infer = infer::pad},
};

}  // namespace aglow::records
