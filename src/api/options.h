// What callers of the C interface say about compiling.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aglow/aglow.h"
#include "compile/compile.h"

struct aglow_options {
  aglow::CompileOptions compile;
  aglow::BackendOptions backend;
  std::map<std::string, std::vector<int64_t>> prepared = {};  // of sessions
  bool pad = false;
};

namespace aglow {

const aglow_options& orDefault(const aglow_options* options);

}  // namespace aglow
