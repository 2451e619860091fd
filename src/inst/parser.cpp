// Programs from text. Every name is defined before it is used; sizes are checked before anything is computed with them.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "graph/syntax.h"
#include "inst/text.h"
#include "support/quote.h"

namespace aglow {

namespace {

// Offsets and arenas beyond this cannot be sizes of memory; below it their sums do not overflow.
constexpr int64_t kMostBytes = int64_t{1} << 60;

class Parser {
public:
  Parser(std::string_view text, const BlobStore& blobs) : lexer_(text), constants_(&blobs) {}

  Result<std::vector<Program>> run() {
    AGLOW_OK(lexer_.expect("declare"));
    AGLOW_OK(lexer_.expect("{"));
    while (!lexer_.accept("}")) AGLOW_OK(declaration());
    std::vector<Program> programs;
    std::unordered_set<std::string> names;
    do {
      AGLOW_OK(lexer_.expect("program"));
      AGLOW_TRY(Token name, lexer_.take(Token::Kind::Global, "the program's name, such as @main"));
      if (!names.insert(name.value).second)
        return textError(name, fmt::format("{} is defined twice", quoted(name.text)));
      program_ = {};
      program_.name = std::move(name.value);
      AGLOW_OK(program());
      programs.push_back(std::move(program_));
    } while (lexer_.at("program"));
    if (lexer_.peek().kind != Token::Kind::End) return lexer_.unexpected("'program' or the end of the text");
    return programs;
  }

private:
  // (@in %x, @out %y) arena 64 { instructions }
  Status program() {
    std::vector<std::pair<RegionId, Access>> signature;
    std::unordered_set<RegionId> mine;
    AGLOW_OK(lexer_.expect("("));
    while (!lexer_.accept(")")) {
      if (!signature.empty()) AGLOW_OK(lexer_.expect(","));
      AGLOW_TRY(const Access how, access());
      const Token token = lexer_.peek();
      AGLOW_OK(lexer_.take(Token::Kind::Local, "a placeholder, such as %x"));
      const auto it = declaredIds_.find(token.value);
      const bool known = it != declaredIds_.end() && token.index == 0;
      if (!known || declared_[static_cast<size_t>(it->second)].as<PlaceholderInit>() == nullptr)
        return textError(token, fmt::format("no placeholder {} is declared", quoted(token.text)));
      if (!mine.insert(it->second).second)
        return textError(token, fmt::format("{} is named twice", quoted(token.text)));
      signature.emplace_back(it->second, how);
    }
    if (lexer_.accept("arena")) {
      AGLOW_TRY(program_.arenaBytes, size("the bytes of the arena"));
    }
    takeDeclared(signature, mine);
    AGLOW_OK(lexer_.expect("{"));
    while (!lexer_.accept("}")) AGLOW_OK(instruction());
    return {};
  }

  // The declared regions that the program names, in their order; its placeholders in the order of the signature.
  void takeDeclared(const std::vector<std::pair<RegionId, Access>>& signature,
                    const std::unordered_set<RegionId>& mine) {
    const std::unordered_set<std::string> named = namesAhead();
    ids_.clear();
    auto next = signature.begin();
    for (size_t i = 0; i < declared_.size(); ++i) {
      const Region& region = declared_[i];
      if (region.as<PlaceholderInit>() == nullptr) {
        if (named.contains(region.name)) define(region);
        continue;
      }
      if (!mine.contains(static_cast<RegionId>(i))) continue;
      Region placeholder = declared_[static_cast<size_t>(next->first)];
      placeholder.source = PlaceholderInit{next->second};
      define(std::move(placeholder));
      ++next;
    }
  }

  // Regions that the text names up to the end of the block, but for those it defines, which hide declared ones.
  std::unordered_set<std::string> namesAhead() const {
    std::unordered_set<std::string> named, own;
    Lexer ahead = lexer_;
    for (int depth = 0; ahead.peek().kind != Token::Kind::End && ahead.peek().kind != Token::Kind::Bad;) {
      const Token token = ahead.next();
      if (token.kind == Token::Kind::Local) (ahead.at("=") ? own : named).insert(token.value);
      if (token.kind != Token::Kind::Punct) continue;
      depth += token.text == "{" ? 1 : token.text == "}" ? -1 : 0;
      if (depth == 0) break;
    }
    for (const std::string& name : own) named.erase(name);
    return named;
  }

  Status declaration() {
    const Token start = lexer_.peek();
    AGLOW_TRY(std::string name, newName(declaredIds_));
    Region region{.name = std::move(name), .type = {}, .source = {}};
    if (lexer_.accept("constant")) {
      AGLOW_TRY(region.type, parseType(lexer_));
      AGLOW_OK(lexer_.expect("="));
      AGLOW_TRY(Tensor bytes, constants_.parse(lexer_, region.type));
      region.source = ConstantInit{std::move(bytes)};
    } else if (lexer_.accept("placeholder")) {
      AGLOW_TRY(region.type, parseType(lexer_));
      region.source = PlaceholderInit{};
    } else if (lexer_.accept("state")) {
      AGLOW_TRY(region.type, parseType(lexer_));
      AGLOW_OK(lexer_.expect("="));
      AGLOW_TRY(Tensor bytes, constants_.parse(lexer_, region.type));
      region.source = StateInit{std::move(bytes)};
    } else if (lexer_.accept("splat")) {
      AGLOW_TRY(region.type, parseType(lexer_));
      AGLOW_OK(lexer_.expect("="));
      AGLOW_TRY(const double value, lexer_.real("a number"));
      region.source = SplatInit{value};
    } else if (lexer_.accept("xavier")) {
      AGLOW_TRY(region.type, parseType(lexer_));
      AGLOW_OK(lexer_.expect("fan"));
      AGLOW_TRY(const int64_t fan, size("the fan-in"));
      AGLOW_OK(lexer_.expect("seed"));
      const std::optional<uint64_t> seed = parseUnsigned(lexer_.peek().text);
      if (!seed) return lexer_.unexpected("a seed");
      lexer_.next();
      if (fan == 0) return textError(start, "the fan-in is at least 1");
      region.source = XavierInit{fan, *seed};
    } else {
      return lexer_.unexpected("'constant', 'placeholder', 'state', 'splat' or 'xavier'");
    }
    declaredIds_.emplace(region.name, static_cast<RegionId>(declared_.size()));
    declared_.push_back(std::move(region));
    return {};
  }

  Status instruction() {
    if (lexer_.peek().kind == Token::Kind::Local) return definition();
    if (lexer_.accept("dealloc")) {
      AGLOW_TRY(const RegionId id, region());
      program_.instrs.push_back({.kind = Instr::Kind::Dealloc, .operands = {{id, Access::Out}}});
      return {};
    }
    const bool beside = lexer_.accept("beside"), chained = !beside && lexer_.accept("chained");
    AGLOW_OK(lexer_.accept("fused") ? fused() : single());
    program_.instrs.back().beside = beside;
    program_.instrs.back().chained = chained;
    return {};
  }

  Status single() {
    Instr instr;
    const Token start = lexer_.peek();
    const OpDef* op = nullptr;
    if (lexer_.accept("copy")) {
      instr.kind = Instr::Kind::Copy;
    } else if (lexer_.accept("copy.start")) {
      instr.kind = Instr::Kind::CopyStart;
    } else if (lexer_.accept("copy.wait")) {
      instr.kind = Instr::Kind::CopyWait;
    } else {
      AGLOW_TRY(op, parseOp(lexer_));
    }
    AGLOW_TRY(instr.operands, operands());
    if (op == nullptr && instr.operands.size() != 2)
      return textError(start,
                       fmt::format("a copy has a destination and a source, not {} operands", instr.operands.size()));
    if (op != nullptr) {
      AGLOW_TRY(instr.attrs, parseAttrs(lexer_, *op));
    } else if (instr.kind != Instr::Kind::Copy) {
      AGLOW_OK(lexer_.expect("token"));
      AGLOW_TRY(instr.token, lexer_.integer("the copy's token"));
    }
    AGLOW_OK(ending(instr));
    program_.instrs.push_back(std::move(instr));
    return {};
  }

  // fused @out %y, @in %x { %a = local f32[4] Exp @out %a, @in %x ... }; locals are names of the whole program.
  Status fused() {
    Instr instr{.kind = Instr::Kind::Fused};
    AGLOW_TRY(instr.operands, operands());
    AGLOW_OK(ending(instr));
    AGLOW_OK(lexer_.expect("{"));
    while (!lexer_.accept("}")) {
      if (lexer_.peek().kind == Token::Kind::Local) {
        AGLOW_TRY(std::string name, newName(ids_));
        AGLOW_OK(lexer_.expect("local"));
        AGLOW_TRY(Type type, parseType(lexer_));
        define({.name = std::move(name), .type = std::move(type), .source = Local{}});
        continue;
      }
      Instr& step = instr.body.emplace_back();
      AGLOW_TRY(const OpDef* op, parseOp(lexer_));
      AGLOW_TRY(step.operands, operands());
      AGLOW_TRY(step.attrs, parseAttrs(lexer_, *op));
      AGLOW_OK(ending(step));
    }
    program_.instrs.push_back(std::move(instr));
    return {};
  }

  // if %predicate from "origin" by kernel, each where it is wanted.
  Status ending(Instr& instr) {
    if (lexer_.accept("if")) {
      AGLOW_TRY(instr.predicate, region());
    }
    instr.origin = program_[instr.operands[0].region].name;
    if (lexer_.accept("from")) {
      AGLOW_TRY(Token origin, lexer_.take(Token::Kind::String, "the origin's name in quotes"));
      instr.origin = std::move(origin.value);
    }
    if (lexer_.accept("by")) {
      AGLOW_TRY(instr.plan, plan());
    }
    return {};
  }

  // tiles units 8 scratch 4096 epilogue [1, 2, 49, 16] not matvec "reason", all but the kernel where it is wanted.
  Result<Plan> plan() {
    Plan plan;
    AGLOW_TRY(plan.kernel, kernel());
    if (lexer_.accept("units")) {
      AGLOW_TRY(plan.units, size("a number of units"));
    }
    if (lexer_.accept("scratch")) {
      AGLOW_TRY(plan.scratchBytes, size("the bytes of working memory"));
    }
    if (lexer_.accept("epilogue")) {
      AGLOW_OK(lexer_.expect("["));
      plan.epilogue.emplace();
      for (size_t i = 0; i < plan.epilogue->size(); ++i) {
        if (i > 0) AGLOW_OK(lexer_.expect(","));
        AGLOW_TRY((*plan.epilogue)[i], size("an extent"));
      }
      AGLOW_OK(lexer_.expect("]"));
    }
    if (lexer_.accept("cut")) {
      AGLOW_TRY(plan.cut, cut());
    }
    while (lexer_.accept("not")) {
      Refusal& refusal = plan.refused.emplace_back();
      AGLOW_TRY(refusal.kernel, kernel());
      AGLOW_TRY(Token reason, lexer_.take(Token::Kind::String, "the reason in quotes"));
      refusal.reason = std::move(reason.value);
    }
    return plan;
  }

  // 2 parts [1, 14] outer [4, 24, 0]
  Result<Cut> cut() {
    Cut cut;
    AGLOW_TRY(cut.axis, size("the number of an axis"));
    AGLOW_OK(lexer_.expect("parts"));
    AGLOW_OK(lexer_.expect("["));
    AGLOW_TRY(cut.images, size("a number of images"));
    AGLOW_OK(lexer_.expect(","));
    AGLOW_TRY(cut.parts, size("a number of parts"));
    AGLOW_OK(lexer_.expect("]"));
    AGLOW_OK(lexer_.expect("outer"));
    AGLOW_OK(lexer_.expect("["));
    do {
      AGLOW_TRY(cut.outer.emplace_back(), size("an extent"));
    } while (lexer_.accept(","));
    AGLOW_OK(lexer_.expect("]"));
    return cut;
  }

  Result<std::string> kernel() {
    AGLOW_TRY(Token name, lexer_.take(Token::Kind::Word, "the name of a kernel"));
    return std::move(name.value);
  }

  // %a = alloc f32[4] at 64 or %v = tensorview %a at 0 : f32[2]
  Status definition() {
    AGLOW_TRY(std::string name, newName(ids_));
    Region fresh{.name = std::move(name), .type = {}, .source = {}};
    Instr::Kind kind = Instr::Kind::Alloc;
    if (lexer_.accept("alloc")) {
      AGLOW_TRY(fresh.type, parseType(lexer_));
      Allocated allocated;
      if (lexer_.accept("at")) {
        AGLOW_TRY(allocated.offset, size("an offset in the arena"));
      }
      fresh.source = allocated;
    } else if (lexer_.accept("tensorview")) {
      kind = Instr::Kind::TensorView;
      AGLOW_TRY(const RegionId base, region());
      AGLOW_OK(lexer_.expect("at"));
      const Token at = lexer_.peek();
      AGLOW_TRY(const int64_t offset, size("an offset in bytes"));
      AGLOW_OK(lexer_.expect(":"));
      AGLOW_TRY(fresh.type, parseType(lexer_));
      const int64_t room = program_[base].type.bytes();
      if (offset > room || fresh.type.bytes() > room - offset)
        return textError(at, fmt::format("{} bytes from {} on do not lie inside the {} bytes of {}", fresh.type.bytes(),
                                         offset, room, quoted(program_[base].name)));
      fresh.source = ViewOf{base, offset};
    } else {
      return lexer_.unexpected("'alloc' or 'tensorview'");
    }
    program_.instrs.push_back({.kind = kind, .operands = {{define(std::move(fresh)), Access::Out}}});
    return {};
  }

  Result<std::vector<Operand>> operands() {
    std::vector<Operand> list;
    do {
      Operand operand;
      AGLOW_TRY(operand.access, access());
      const bool optional = !list.empty() && (operand.access == Access::In || operand.access == Access::Out);
      const bool absent = optional && lexer_.accept("_");
      if (!absent) {
        AGLOW_TRY(operand.region, region());
      }
      list.push_back(operand);
    } while (lexer_.accept(","));
    return list;
  }

  Result<Access> access() {
    const Token& token = lexer_.peek();
    for (const Access a : {Access::In, Access::Out, Access::InOut, Access::Scratch})
      if (token.kind == Token::Kind::Global && token.value == accessName(a)) {
        lexer_.next();
        return a;
      }
    return lexer_.unexpected("@in, @out, @inout or @scratch");
  }

  Result<RegionId> region() {
    const Token token = lexer_.peek();
    AGLOW_OK(lexer_.take(Token::Kind::Local, "a region, such as %a"));
    const auto it = ids_.find(token.value);
    if (it == ids_.end() || token.index != 0)
      return textError(token, fmt::format("no region {} is defined before this", quoted(token.text)));
    return it->second;
  }

  // "%name =", not yet taken.
  using Ids = std::unordered_map<std::string, RegionId>;
  Result<std::string> newName(const Ids& taken) {
    const Token token = lexer_.peek();
    AGLOW_OK(lexer_.take(Token::Kind::Local, "a new region, such as %a"));
    if (token.index != 0) return textError(token, "regions have no numbered results");
    if (taken.contains(token.value)) return textError(token, fmt::format("{} is defined twice", quoted(token.text)));
    AGLOW_OK(lexer_.expect("="));
    return token.value;
  }

  RegionId define(Region fresh) {
    std::string name = fresh.name;
    const RegionId id = program_.add(std::move(fresh));
    ids_.emplace(std::move(name), id);
    return id;
  }

  Result<int64_t> size(std::string_view what) {
    const Token token = lexer_.peek();
    AGLOW_TRY(const int64_t value, lexer_.integer(what));
    if (value < 0 || value > kMostBytes) return textError(token, fmt::format("{} cannot be {}", value, what));
    return value;
  }

  Lexer lexer_;
  ConstantText constants_;
  std::vector<Region> declared_;  // with their numbers in declaredIds_
  Ids declaredIds_;
  Program program_;  // under way
  Ids ids_;          // its regions
};

}  // namespace

Result<std::vector<Program>> parsePrograms(std::string_view text, const BlobStore& blobs) {
  return Parser(text, blobs).run();
}

Result<Program> parseProgram(std::string_view text, const BlobStore& blobs) {
  AGLOW_TRY(std::vector<Program> programs, parsePrograms(text, blobs));
  if (programs.size() == 1) return std::move(programs.front());
  return Error{.code = Code::BadText, .message = fmt::format("expected one program, found {}", programs.size())};
}

}  // namespace aglow
