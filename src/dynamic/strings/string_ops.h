// Operators that look into strings or maps, or make them, by theme.
#pragma once

#include <span>

#include "dynamic/strings/string_node.h"

namespace aglow::strings {

using Handler = Values(const Call&);

struct HandlerRow {
  std::string_view name;
  Handler* handler;
  std::string_view domain = {};
};

std::span<const HandlerRow> stringHandlers();
std::span<const HandlerRow> mapHandlers();
std::span<const HandlerRow> tokenizerHandlers();
std::span<const HandlerRow> imageHandlers();

// Null when there is none.
Handler* findHandler(std::string_view domain, std::string_view name);

}  // namespace aglow::strings
