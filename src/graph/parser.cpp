// Text to graphs. One token of lookahead, no recursion, and names are defined before they are used.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/syntax.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "support/quote.h"
#include "support/suggest.h"

namespace aglow {

namespace {

class ModuleParser {
public:
  ModuleParser(std::string_view text, const BlobStore& blobs)
      : lexer_(text), constants_(&blobs), scalesLeft_(text.size() + kFreeScales) {}

  Result<std::unique_ptr<Module>> run() {
    AGLOW_OK(lexer_.expect("module"));
    AGLOW_OK(lexer_.expect("{"));
    while (!lexer_.accept("}")) {
      if (lexer_.accept("placeholder"))
        AGLOW_OK(placeholder());
      else if (lexer_.accept("state"))
        AGLOW_OK(state());
      else if (lexer_.accept("constant"))
        AGLOW_OK(constant());
      else if (lexer_.accept("func"))
        AGLOW_OK(function());
      else
        return lexer_.unexpected("'placeholder', 'state', 'constant', 'func' or '}'");
    }
    if (lexer_.peek().kind != Token::Kind::End) return lexer_.unexpected("the end of the text");
    return std::move(module_);
  }

private:
  // A chain of Concat doubles the scales of its types with every node. In a printed text all of them can be read, so
  // its length bounds their number; where types are left out, that many are allowed for.
  static constexpr size_t kFreeScales = size_t{1} << 20;

  static size_t scalesOf(const std::vector<Value>& values) {
    size_t count = 0;
    for (const Value v : values) count += v ? v.type().quant().scales.size() : 0;
    return count;
  }

  // @name : type
  Result<std::pair<std::string, Type>> declaration() {
    AGLOW_TRY(Token name, lexer_.take(Token::Kind::Global, "a name such as @x"));
    AGLOW_OK(checkNew(name, module_->findStorage(name.value) != nullptr));
    AGLOW_OK(lexer_.expect(":"));
    AGLOW_TRY(Type type, parseType(lexer_));
    return std::pair(std::move(name.value), std::move(type));
  }

  Status placeholder() {
    AGLOW_TRY(auto declared, declaration());
    module_->addPlaceholder(declared.first, std::move(declared.second));
    return {};
  }

  Status state() {
    AGLOW_TRY(auto declared, valued());
    module_->addState(declared.first, std::move(declared.second));
    return {};
  }

  Status constant() {
    AGLOW_TRY(auto declared, valued());
    module_->addConstant(declared.first, std::move(declared.second));
    return {};
  }

  // @name : type = bytes
  Result<std::pair<std::string, Tensor>> valued() {
    AGLOW_TRY(auto declared, declaration());
    AGLOW_OK(lexer_.expect("="));
    AGLOW_TRY(Tensor tensor, constants_.parse(lexer_, declared.second));
    return std::pair(std::move(declared.first), std::move(tensor));
  }

  Status function() {
    AGLOW_TRY(const Token name, lexer_.take(Token::Kind::Global, "the name of a function, such as @main"));
    if (!functionNames_.insert(name.value).second)
      return textError(name, fmt::format("{} is defined twice", quoted(name.text)));
    function_ = module_->addFunction(name.value);
    nodes_.clear();
    written_.clear();
    AGLOW_OK(lexer_.expect("{"));
    while (!lexer_.accept("}")) AGLOW_OK(node());
    return {};
  }

  // %name = Op(operands) {attributes} if predicate : types
  Status node() {
    Token name;
    const bool named = lexer_.peek().kind == Token::Kind::Local;
    if (named) {
      name = lexer_.next();
      AGLOW_OK(checkNew(name, nodes_.contains(name.value)));
      AGLOW_OK(lexer_.expect("="));
    } else if (lexer_.peek().kind != Token::Kind::Word) {
      return lexer_.unexpected("a node or '}'");
    }
    const Token start = lexer_.peek();
    AGLOW_TRY(const OpDef* op, parseOp(lexer_));
    AGLOW_TRY(const std::vector<Value> inputs, operands());
    AGLOW_TRY(Attrs attrs, parseAttrs(lexer_, *op));
    Value predicate;
    if (lexer_.accept("if")) {
      AGLOW_TRY(predicate, value());
    }
    if (scalesOf(inputs) > scalesLeft_) return textError(start, "the types have more scales than the text can show");
    Result<std::vector<Type>> types = checkedTypes(attrs, inputs, predicate);
    if (!types.ok()) return textError(start, types.error().message, types.error().hint);
    for (const Type& type : *types) scalesLeft_ -= std::min(scalesLeft_, type.quant().scales.size());
    if (op == &opDef(Op::Save) && !written_.insert(inputs[1].node).second)
      return textError(start, fmt::format("{} is written twice", quoted(inputs[1].node->name())));
    if (lexer_.accept(":")) AGLOW_OK(writtenTypes(*types));
    Node* made = function_->add(std::move(attrs), *std::move(types), inputs, name.value);
    if (predicate) made->setPredicate(predicate);
    nodes_.emplace(made->name(), made);
    return {};
  }

  // (%a, _, @b); absent operands at the end are as good as none.
  Result<std::vector<Value>> operands() {
    std::vector<Value> values;
    AGLOW_OK(lexer_.expect("("));
    if (lexer_.accept(")")) return values;
    do {
      Value operand;
      if (!lexer_.accept("_")) {
        AGLOW_TRY(operand, value());
      }
      values.push_back(operand);
    } while (lexer_.accept(","));
    if (!lexer_.accept(")")) return lexer_.unexpected("',' or ')'");
    while (!values.empty() && !values.back()) values.pop_back();
    return values;
  }

  Result<Value> value() {
    const Token& token = lexer_.peek();
    Node* found = nullptr;
    if (token.kind == Token::Kind::Global) {
      found = module_->findStorage(token.value);
    } else if (token.kind == Token::Kind::Local) {
      const auto it = nodes_.find(token.value);
      found = it == nodes_.end() ? nullptr : it->second;
    } else {
      return lexer_.unexpected("a value such as %x or @x");
    }
    if (found == nullptr)
      return textError(token, fmt::format("{} is not defined before its use", quoted(token.text)), similar(token));
    if (token.index >= found->resultCount())
      return textError(token, fmt::format("{} has {} results", quoted(found->name()), found->resultCount()));
    return found->result(static_cast<int>(lexer_.next().index));
  }

  Status writtenTypes(const std::vector<Type>& inferred) {
    for (size_t i = 0; i < inferred.size(); ++i) {
      if (i > 0) AGLOW_OK(lexer_.expect(","));
      const Token start = lexer_.peek();
      AGLOW_TRY(const Type written, parseType(lexer_));
      if (written != inferred[i])
        return textError(
            start, fmt::format("expected {} by the operator's rules, found {}", inferred[i].text(), written.text()));
    }
    if (inferred.empty() || lexer_.at(","))
      return lexer_.unexpected(fmt::format("{} types", inferred.empty() ? "no" : std::to_string(inferred.size())));
    return {};
  }

  static Status checkNew(const Token& name, bool taken) {
    if (name.value.empty()) return textError(name, "a name cannot be empty");
    if (name.index != 0) return textError(name, "all results of a node are defined at once, under one name");
    if (taken) return textError(name, fmt::format("{} is defined twice", quoted(name.text)));
    return {};
  }

  std::string similar(const Token& token) const {
    std::vector<std::string_view> names;
    if (token.kind == Token::Kind::Local)
      for (const auto& [name, node] : nodes_) names.push_back(name);
    else
      for (const auto& node : module_->storage()) names.push_back(node->name());
    return didYouMean(token.value, names);
  }

  Lexer lexer_;
  ConstantText constants_;
  size_t scalesLeft_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  std::unordered_set<std::string> functionNames_;
  Function* function_ = nullptr;
  std::unordered_map<std::string, Node*> nodes_;  // of the function
  std::unordered_set<const Node*> written_;       // placeholders, by the function
};

}  // namespace

Result<std::unique_ptr<Module>> parseModule(std::string_view text, const BlobStore& blobs) {
  return ModuleParser(text, blobs).run();
}

}  // namespace aglow
