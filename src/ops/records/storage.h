// What holds bytes: constants, placeholders, and the node that writes a result into a placeholder.
#pragma once

#include "ops/kind_sets.h"
#include "ops/op_def.h"
#include "ops/type_rules.h"

namespace aglow::records {

inline constexpr OpDef kStorage[] = {
    {.name = "Constant", .doc = "Bytes known when compiling.", .kind = OpKind::Storage},
    {.name = "Placeholder", .doc = "Bytes bound at run time.", .kind = OpKind::Storage},
    {.name = "Save",
     .doc = "Writes a value into a placeholder.",
     .kind = OpKind::Storage,
     .in = {{"value", kinds::any, 'T'}, {"target", kinds::any, 'T'}},
     .out = {}},
};

}  // namespace aglow::records
