#include "compile/package_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/lexer.h"
#include "graph/syntax.h"
#include "support/quote.h"

namespace aglow {

namespace {

constexpr std::string_view kKinds[] = {"tensor", "sequence", "none", "frozen"};  // as Port::Kind has them
constexpr int64_t kMostItems = 1 << 16;

std::string_view nameOf(Port::Kind kind) { return kKinds[static_cast<size_t>(kind)]; }
bool hasType(Port::Kind kind) { return kind == Port::Kind::Tensor || kind == Port::Kind::Frozen; }

Status printPort(std::string& out, std::string_view role, const Port& port) {
  if (port.labels)
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("{} {} stands for maps or strings; a package takes and gives tensors", role,
                                        quoted(port.name)),
                 .where = {},
                 .hint = "run the model itself, or compile it to a bundle"};
  out += fmt::format("{} {} {}", role, nameOf(port.kind), printString(port.name));
  if (port.kind == Port::Kind::Tensor) out += " " + printString(port.placeholder);
  if (hasType(port.kind)) out += " " + port.type.text();
  if (port.kind == Port::Kind::Sequence) out += fmt::format(" {}", port.items.size());
  out += "\n";
  for (const Port& item : port.items) AGLOW_OK(printPort(out, "item", item));
  return {};
}

Result<std::string> takeString(Lexer& lexer, std::string_view what) {
  AGLOW_TRY(Token token, lexer.take(Token::Kind::String, what));
  return std::move(token.value);
}

Result<Port> parsePort(Lexer& lexer, bool isItem = false) {
  Port port;
  AGLOW_TRY(const Token word, lexer.take(Token::Kind::Word, "a kind of port"));
  const auto kind = std::find(std::begin(kKinds), std::end(kKinds), word.value);
  if (kind == std::end(kKinds)) return textError(word, "expected a kind of port");
  port.kind = static_cast<Port::Kind>(kind - std::begin(kKinds));
  if (isItem && port.kind != Port::Kind::Tensor) return textError(word, "expected a tensor in a sequence");
  AGLOW_TRY(port.name, takeString(lexer, "a name"));
  if (port.kind == Port::Kind::Tensor) {
    AGLOW_TRY(port.placeholder, takeString(lexer, "a placeholder"));
  }
  if (hasType(port.kind)) {
    AGLOW_TRY(port.type, parseType(lexer));
  }
  if (port.kind != Port::Kind::Sequence) return port;
  const Token count = lexer.peek();
  AGLOW_TRY(const int64_t items, lexer.integer("a number of items"));
  if (items < 0 || items > kMostItems) return textError(count, "expected a number of items");
  for (int64_t i = 0; i < items; ++i) {
    AGLOW_OK(lexer.expect("item"));
    AGLOW_TRY(Port item, parsePort(lexer, true));
    port.items.push_back(std::move(item));
  }
  return port;
}

}  // namespace

Result<std::string> printPackage(const PackageText& package) {
  std::string out = fmt::format("target {} {}\n", printString(package.triple), printString(package.cpu));
  for (const std::string& feature : package.features) out += fmt::format("feature {}\n", printString(feature));
  for (const Interface& interface : package.interfaces) {
    out += fmt::format("function {}\n", printString(interface.function));
    for (const Port& port : interface.inputs) AGLOW_OK(printPort(out, "input", port));
    for (const Port& port : interface.outputs) AGLOW_OK(printPort(out, "output", port));
  }
  return out;
}

Result<PackageText> parsePackage(std::string_view text) {
  PackageText package;
  Lexer lexer(text);
  AGLOW_OK(lexer.expect("target"));
  AGLOW_TRY(package.triple, takeString(lexer, "a triple"));
  AGLOW_TRY(package.cpu, takeString(lexer, "a processor"));
  while (lexer.accept("feature")) {
    AGLOW_TRY(std::string feature, takeString(lexer, "a feature"));
    package.features.push_back(std::move(feature));
  }
  while (lexer.accept("function")) {
    Interface& interface = package.interfaces.emplace_back();
    AGLOW_TRY(interface.function, takeString(lexer, "a name"));
    while (lexer.at("input") || lexer.at("output")) {
      const bool input = lexer.next().text == "input";
      AGLOW_TRY(Port port, parsePort(lexer));
      (input ? interface.inputs : interface.outputs).push_back(std::move(port));
    }
  }
  if (lexer.peek().kind != Token::Kind::End) return lexer.unexpected("a function or the end");
  return package;
}

}  // namespace aglow
