// The operators by name and number, and the check of a use against its record.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/attrs.h"
#include "ops/op_def.h"

namespace aglow {

// Generated from the records: one enumerator per operator, in the records' order.
enum class Op : uint16_t {
#define AGLOW_OP(name) name,
#include "ops/op_enum.inc"
#undef AGLOW_OP
};

const OpDef& opDef(Op op);
Op opOf(const OpDef& def);
std::optional<Op> findOp(std::string_view name);

}  // namespace aglow
