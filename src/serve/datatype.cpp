#include "serve/datatype.h"

#include <utility>

namespace aglow::serve {

namespace {

constexpr std::pair<ElemKind, std::string_view> kDatatypes[] = {
    {ElemKind::Bool, "BOOL"},     {ElemKind::Int8, "INT8"},     {ElemKind::Int16, "INT16"},
    {ElemKind::Int32, "INT32"},   {ElemKind::Int64, "INT64"},   {ElemKind::UInt8, "UINT8"},
    {ElemKind::UInt16, "UINT16"}, {ElemKind::UInt32, "UINT32"}, {ElemKind::UInt64, "UINT64"},
    {ElemKind::Float16, "FP16"},  {ElemKind::Float32, "FP32"},  {ElemKind::Float64, "FP64"},
    {ElemKind::BFloat16, "BF16"},
};

}  // namespace

std::optional<std::string_view> datatypeOf(ElemKind kind) {
  for (const auto& [stored, name] : kDatatypes)
    if (stored == storageKind(kind)) return name;
  return std::nullopt;
}

std::optional<ElemKind> kindOf(std::string_view datatype) {
  for (const auto& [kind, name] : kDatatypes)
    if (name == datatype) return kind;
  return std::nullopt;
}

}  // namespace aglow::serve
