// What the text forms of graphs and of instructions have in common: types, attributes and the bytes of constants. The
// grammar is in docs/text-form.md. All errors are BadText with line and column.
#pragma once

#include <cstdint>
#include <string>

#include "graph/blobs.h"
#include "graph/lexer.h"
#include "ops/attrs.h"
#include "tensor/tensor.h"

namespace aglow {

// As Type::text() writes it: f32[1,3,8,8], qi8[4]<0.5:3>, qi8[2,4]<axis 0: 0.5:3, 0.25:0>.
Result<Type> parseType(Lexer& lexer);

// An operator of the records by its name; the nearest one is the hint where there is none.
Result<const OpDef*> parseOp(Lexer& lexer);

// {strides = [1, 1], kind = max}: those that differ from their defaults, bit for bit; nothing when none does.
std::string printAttrs(const Attrs& attrs);
// What is not named has its default; no braces at all mean all defaults.
Result<Attrs> parseAttrs(Lexer& lexer, const OpDef& op);

// The bytes of constants, after their type and "=": the elements themselves where they are few ([0.5, -1, nan]), one
// value for all (splat 0), or the key of a blob (blob 0x0123456789abcdef). Hexadecimal elements are bits, so everything
// round-trips. One object serves one text from its start: splats share a budget, so that a short text cannot ask for
// much memory, and writer and reader spend it alike.
class ConstantText {
public:
  // Blobs are written to, or read from, the store; without one they are only named, or refused.
  explicit ConstantText(BlobStore* written) : written_(written) {}
  explicit ConstantText(const BlobStore* read) : read_(read) {}

  std::string print(const Tensor& tensor);
  Result<Tensor> parse(Lexer& lexer, const Type& type);

private:
  static constexpr int64_t kSplatBytes = int64_t{1} << 28;

  Result<Tensor> parseSplat(Lexer& lexer, const Type& type);
  Result<Tensor> parseBlob(Lexer& lexer, const Type& type) const;

  BlobStore* written_ = nullptr;
  const BlobStore* read_ = nullptr;
  int64_t splatBytes_ = kSplatBytes;
};

// One element of a tensor of any kind.
std::string printElement(ElemKind kind, const std::byte* element);
Status parseElement(Lexer& lexer, ElemKind kind, std::byte* element);

}  // namespace aglow
