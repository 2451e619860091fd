// Types and attributes as text.
#include "graph/syntax.h"

#include <fmt/format.h>

#include <bit>
#include <vector>

#include "ops/all_ops.h"
#include "ops/op.h"
#include "support/suggest.h"

namespace aglow {

namespace {

// "[1, 2]", every item through one parser.
template <class T, class F>
Result<std::vector<T>> parseList(Lexer& lexer, F&& item) {
  std::vector<T> items;
  AGLOW_OK(lexer.expect("["));
  if (lexer.accept("]")) return items;
  do {
    AGLOW_TRY(T value, item());
    items.push_back(std::move(value));
  } while (lexer.accept(","));
  if (!lexer.accept("]")) return lexer.unexpected("',' or ']'");
  return items;
}

template <class T, class F>
std::string printList(const std::vector<T>& items, F&& item) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i) out += (i == 0 ? "" : ", ") + item(items[i]);
  return out + "]";
}

Result<ElemKind> parseElemKind(Lexer& lexer) {
  std::vector<std::string_view> names;
  for (int k = 0; k < kElemKinds; ++k) names.push_back(elemName(static_cast<ElemKind>(k)));
  const Token& token = lexer.peek();
  const auto kind = token.kind == Token::Kind::Word ? elemKindByName(token.value) : std::nullopt;
  if (!kind) return lexer.unexpected("an element kind such as f32", didYouMean(token.value, names));
  lexer.next();
  return *kind;
}

// <0.5:3> or <axis 0: 0.5:3, 0.25:0>
Result<QuantParams> parseQuantParams(Lexer& lexer) {
  QuantParams params;
  AGLOW_OK(lexer.expect("<"));
  if (lexer.accept("axis")) {
    const Token axis = lexer.peek();
    AGLOW_TRY(const int64_t value, lexer.integer("the number of an axis"));
    if (value < 0 || value > INT32_MAX) return textError(axis, fmt::format("there is no axis {}", value));
    params.axis = static_cast<int>(value);
    AGLOW_OK(lexer.expect(":"));
    if (lexer.accept(">")) return params;
  }
  do {
    const Token scale = lexer.peek();
    AGLOW_TRY(const double real, lexer.real("a scale"));
    AGLOW_OK(lexer.expect(":"));
    const Token offset = lexer.peek();
    AGLOW_TRY(const int64_t integer, lexer.integer("an offset"));
    if (integer < INT32_MIN || integer > INT32_MAX)
      return textError(offset, fmt::format("offset {} does not fit into 32 bits", integer));
    params.scales.push_back(static_cast<float>(real));
    params.offsets.push_back(static_cast<int32_t>(integer));
  } while (lexer.accept(","));
  if (!lexer.accept(">")) return lexer.unexpected("',' or '>'");
  return params;
}

std::string printInteger(int64_t value) { return std::to_string(value); }

// The words of an enumeration stand without quotes, where a token can hold them.
std::string printEnum(const std::string& word) {
  Lexer lexer(word);
  return lexer.peek().kind == Token::Kind::Word && lexer.peek().text == word ? word : printString(word);
}

std::string printAttr(const AttrDef& def, const AttrValue& value) {
  switch (def.kind) {
    case AttrKind::Bool:
      if (const int64_t flag = std::get<int64_t>(value); flag == 0 || flag == 1) return flag != 0 ? "true" : "false";
      [[fallthrough]];
    case AttrKind::Int:
      return printInteger(std::get<int64_t>(value));
    case AttrKind::Float:
      return printReal(std::get<double>(value));
    case AttrKind::Ints:
      return printList(std::get<std::vector<int64_t>>(value), printInteger);
    case AttrKind::Floats:
      return printList(std::get<std::vector<double>>(value), printReal);
    case AttrKind::Enum:
      return printEnum(std::get<std::string>(value));
    case AttrKind::Word:
      return printString(std::get<std::string>(value));
    case AttrKind::Elem:
      break;
  }
  return std::string(elemName(std::get<ElemKind>(value)));
}

Result<std::string> parseWord(Lexer& lexer, std::string_view what) {
  const Token::Kind kind = lexer.peek().kind;
  if (kind != Token::Kind::Word && kind != Token::Kind::String) return lexer.unexpected(what);
  return lexer.next().value;
}

Result<AttrValue> parseAttr(Lexer& lexer, const AttrDef& def) {
  const auto integer = [&] { return lexer.integer("an integer"); };
  const auto real = [&] { return lexer.real("a number"); };
  switch (def.kind) {
    case AttrKind::Bool:
      if (lexer.accept("true")) return AttrValue(int64_t{1});
      if (lexer.accept("false")) return AttrValue(int64_t{0});
      if (lexer.peek().kind != Token::Kind::Number) return lexer.unexpected("'true' or 'false'");
      [[fallthrough]];
    case AttrKind::Int: {
      AGLOW_TRY(const int64_t value, integer());
      return AttrValue(value);
    }
    case AttrKind::Float: {
      AGLOW_TRY(const double value, real());
      return AttrValue(value);
    }
    case AttrKind::Ints: {
      AGLOW_TRY(std::vector<int64_t> values, parseList<int64_t>(lexer, integer));
      return AttrValue(std::move(values));
    }
    case AttrKind::Floats: {
      AGLOW_TRY(std::vector<double> values, parseList<double>(lexer, real));
      return AttrValue(std::move(values));
    }
    case AttrKind::Enum:
    case AttrKind::Word: {
      AGLOW_TRY(std::string word, parseWord(lexer, def.kind == AttrKind::Enum ? def.choices : "a string"));
      return AttrValue(std::move(word));
    }
    case AttrKind::Elem:
      break;
  }
  AGLOW_TRY(const ElemKind kind, parseElemKind(lexer));
  return AttrValue(kind);
}

}  // namespace

Result<Type> parseType(Lexer& lexer) {
  const Token start = lexer.peek();
  AGLOW_TRY(const ElemKind kind, parseElemKind(lexer));
  AGLOW_TRY(std::vector<int64_t> dims, parseList<int64_t>(lexer, [&] { return lexer.integer("an extent"); }));
  Result<Shape> shape = Shape::create(std::move(dims));
  if (!shape.ok()) return textError(start, shape.error().message);
  if (!lexer.at("<")) return Type(kind, *std::move(shape));
  AGLOW_TRY(QuantParams params, parseQuantParams(lexer));
  Result<Type> type = Type::quantized(kind, *std::move(shape), std::move(params));
  if (!type.ok()) return textError(start, type.error().message);
  return type;
}

Result<const OpDef*> parseOp(Lexer& lexer) {
  const Token& token = lexer.peek();
  const auto op = token.kind == Token::Kind::Word ? findOp(token.value) : std::nullopt;
  if (op) {
    lexer.next();
    return &opDef(*op);
  }
  std::vector<std::string_view> names;
  for (const OpDef* known : allOps()) names.push_back(known->name);
  return lexer.unexpected("an operator", didYouMean(token.value, names));
}

std::string printAttrs(const Attrs& attrs) {
  std::string out;
  for (int i = 0; i < attrs.op().attrs.size(); ++i) {
    const AttrDef& def = attrs.op().attrs[i];
    const std::string text = printAttr(def, attrs.at(i));
    // The text tells -0 from 0, which equality does not.
    if (text == printAttr(def, defaultValue(def))) continue;
    out += fmt::format("{}{} = {}", out.empty() ? "{" : ", ", def.name, text);
  }
  return out.empty() ? out : out + "}";
}

Result<Attrs> parseAttrs(Lexer& lexer, const OpDef& op) {
  Attrs attrs(op);
  if (!lexer.accept("{") || lexer.accept("}")) return attrs;
  std::vector<bool> seen(static_cast<size_t>(op.attrs.size()));
  do {
    const Token& token = lexer.peek();
    const int index = token.kind == Token::Kind::Word ? attrs.indexOf(token.value) : -1;
    if (index < 0) {
      std::vector<std::string_view> names;
      for (const AttrDef& def : op.attrs) names.push_back(def.name);
      return lexer.unexpected(fmt::format("an attribute of {}", op.name), didYouMean(token.value, names));
    }
    if (seen[static_cast<size_t>(index)])
      return textError(token, fmt::format("attribute '{}' is given twice", token.value));
    seen[static_cast<size_t>(index)] = true;
    lexer.next();
    AGLOW_OK(lexer.expect("="));
    AGLOW_TRY(AttrValue value, parseAttr(lexer, op.attrs[index]));
    attrs.setAt(index, std::move(value));
  } while (lexer.accept(","));
  if (!lexer.accept("}")) return lexer.unexpected("',' or '}'");
  return attrs;
}

}  // namespace aglow
