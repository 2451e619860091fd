#include "import/onnx/own_domain.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "graph/syntax.h"
#include "graph/verifier.h"
#include "import/onnx/op_import.h"
#include "support/quote.h"

namespace aglow::onnx {

std::optional<float> exactFloat(double value) {
  const auto narrow = static_cast<float>(value);
  if (std::bit_cast<uint64_t>(static_cast<double>(narrow)) != std::bit_cast<uint64_t>(value)) return std::nullopt;
  return narrow;
}

std::string quantizedTypeKey(std::string_view name) { return fmt::format("{}.type:{}", kOwnDomain, name); }

Result<Type> fullType(const Model& model, std::string_view name, const Type& plain) {
  const auto same = [key = quantizedTypeKey(name)](const auto& pair) { return pair.first == key; };
  const auto found = std::find_if(model.metadata.begin(), model.metadata.end(), same);
  if (found == model.metadata.end()) return plain;
  Lexer lexer(found->second);
  Result<Type> type = parseType(lexer);
  const bool read = type.ok() && lexer.peek().kind == Token::Kind::End;
  if (read && isQuantized(type->kind()) && storageKind(type->kind()) == plain.kind() && type->shape() == plain.shape())
    return type;
  return Error{.code = Code::BadGraph,
               .message = fmt::format("the metadata of {} say its type is {}; expected a quantized {}", quoted(name),
                                      quoted(found->second), plain.text())};
}

// ---------------------------------------------------------------- writing

namespace {

Attribute named(std::string_view name, AttributeType type) {
  Attribute a;
  a.name = name;
  a.type = type;
  return a;
}

// Reals that floats do not hold.
Attribute wideReals(std::string_view name, const std::vector<double>& values, std::vector<int64_t> dims,
                    std::vector<std::shared_ptr<const void>>& keep) {
  auto stored = std::make_shared<std::vector<double>>(values);
  Attribute a = named(name, AttributeType::Tensor);
  a.t = std::make_shared<TensorProto>();
  a.t->dims = std::move(dims);
  a.t->dataType = elemInfo(ElemKind::Float64).onnx;
  a.t->raw = std::as_bytes(std::span(*stored));
  keep.push_back(std::move(stored));
  return a;
}

Attribute realsOf(std::string_view name, const std::vector<double>& values,
                  std::vector<std::shared_ptr<const void>>& keep) {
  Attribute a = named(name, AttributeType::Floats);
  for (const double value : values) {
    const std::optional<float> narrow = exactFloat(value);
    if (!narrow) return wideReals(name, values, {static_cast<int64_t>(values.size())}, keep);
    a.floats.push_back(*narrow);
  }
  return a;
}

struct ValueWriter {
  std::string_view name;
  std::vector<std::shared_ptr<const void>>& keep;

  Attribute operator()(int64_t value) const {
    Attribute a = named(name, AttributeType::Int);
    a.i = value;
    return a;
  }
  Attribute operator()(double value) const {
    const std::optional<float> narrow = exactFloat(value);
    if (!narrow) return wideReals(name, {value}, {}, keep);
    Attribute a = named(name, AttributeType::Float);
    a.f = *narrow;
    return a;
  }
  Attribute operator()(const std::vector<int64_t>& values) const {
    Attribute a = named(name, AttributeType::Ints);
    a.ints = values;
    return a;
  }
  Attribute operator()(const std::vector<double>& values) const { return realsOf(name, values, keep); }
  Attribute operator()(const std::string& value) const {
    Attribute a = named(name, AttributeType::String);
    a.s = value;
    return a;
  }
  Attribute operator()(ElemKind kind) const { return (*this)(std::string(elemName(kind))); }
};

}  // namespace

std::vector<Attribute> ownAttributes(const Attrs& attrs, std::vector<std::shared_ptr<const void>>& keep) {
  std::vector<Attribute> written;
  for (int i = 0; i < attrs.op().attrs.size(); ++i)
    if (!attrs.isDefault(i)) written.push_back(std::visit(ValueWriter{attrs.op().attrs[i].name, keep}, attrs.at(i)));
  return written;
}

// ---------------------------------------------------------------- reading

namespace {

std::vector<double> wideRealsOf(const OpImport& c, std::string_view name, int rank) {
  const Tensor t = c.tensor(name);
  if (t.type().kind() != ElemKind::Float64 || t.type().rank() != rank)
    fail(Code::BadNode,
         fmt::format("attribute '{}' is a tensor {}; expected f64 with {} axes", name, t.type().text(), rank));
  return t.doubles();
}

AttrValue valueOf(const OpImport& c, const AttrDef& def) {
  const bool wide = c.attr(def.name)->type == AttributeType::Tensor;
  switch (def.kind) {
    case AttrKind::Int:
      return c.integer(def.name);
    case AttrKind::Bool:
      return int64_t{c.integer(def.name) != 0};
    case AttrKind::Float:
      return wide ? wideRealsOf(c, def.name, 0).front() : c.real(def.name);
    case AttrKind::Ints:
      return c.ints(def.name);
    case AttrKind::Floats:
      return wide ? wideRealsOf(c, def.name, 1) : c.reals(def.name);
    case AttrKind::Enum:
    case AttrKind::Word:
      return c.word(def.name);
    case AttrKind::Elem:
      break;
  }
  const std::string word = c.word(def.name);
  const std::optional<ElemKind> kind = elemKindByName(word);
  if (!kind) fail(Code::BadNode, fmt::format("attribute '{}' is {}; expected an element kind", def.name, quoted(word)));
  return *kind;
}

}  // namespace

void importOwnOperator(OpImport& c) {
  const OpDef& def = opDef(*findOp(c.node.opType));
  Attrs attrs(def);
  for (const Attribute& a : c.node.attributes) {
    if (a.name == kPredicateAttribute) continue;
    const int index = attrs.indexOf(a.name);
    if (index < 0) fail(Code::BadNode, fmt::format("{} has no attribute {}", def.name, quoted(a.name)));
    attrs.setAt(index, valueOf(c, def.attrs[index]));
  }
  std::vector<Value> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.optional(i));
  Value predicate;
  if (c.integer(kPredicateAttribute, 0) != 0) {
    if (operands.empty() || !operands.back())
      fail(Code::BadNode, "the predicate is missing; expected it as the last input");
    predicate = operands.back();
    operands.pop_back();
  }
  while (!operands.empty() && !operands.back()) operands.pop_back();
  orFail(checkedTypes(attrs, operands, predicate));
  aglow::Node* node = c.b.make(std::move(operands), std::move(attrs));
  node->setPredicate(predicate);
  for (int i = 0; i < node->resultCount(); ++i) c.out(i, node->result(i));
}

}  // namespace aglow::onnx
