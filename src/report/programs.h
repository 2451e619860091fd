// A placed program as data for a page: what each instruction does, what runs it and why, and where its memory lies.
#pragma once

#include <nlohmann/json.hpp>

#include "inst/program.h"

namespace aglow {

// {"name", "count", "memory": {..., "buffers": [[name, type, offset, bytes, first, last], ...]},
//  "instructions": [{"number", "node", "nodes", "operators", "type", "kernel", "refused", "flops", "bytes", ...}, ...]}
// Lifetimes are from one instruction's number to another's, markers counted.
nlohmann::json programJson(const Program& program);

}  // namespace aglow
