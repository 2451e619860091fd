// Drawing operand types and attributes. A try fixes a rank, a few extents and one kind per type letter, and draws
// everything else around them, so that sizes agree often. Where a type rule says which shape or how many entries it
// expected, the try is mended accordingly; so even rules with eight operands are met.
#include "random_graph.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/all_ops.h"
#include "tensor/convert.h"

namespace aglow {

uint64_t Random::bits() {
  state_ += 0x9E3779B97F4A7C15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t Random::between(int64_t low, int64_t high) {
  const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + (range == 0 ? bits() : bits() % range));
}

double Random::real(double low, double high) {
  return low + (high - low) * (static_cast<double>(bits() >> 11) / 9007199254740992.0);
}

Tensor randomTensor(Random& random, const Type& type, double low, double high) {
  const auto count = static_cast<size_t>(type.elements());
  if (isFloat(type.kind())) {
    std::vector<double> values(count);
    for (double& v : values) v = random.real(low, high);
    // Powers of two have no sign.
    if (type.kind() == ElemKind::Float8E8M0)
      for (double& v : values) v = std::max(std::abs(v), 0.0625);
    return Tensor::fromDoubles(type, values);
  }
  if (isUnsigned(type.kind()) || type.kind() == ElemKind::Bool) low = std::max(low, 0.0);
  if (isQuantized(type.kind())) low = -100, high = 100;
  if (type.kind() == ElemKind::Bool || high < low) high = low + 1;
  std::vector<int64_t> values(count);
  for (int64_t& v : values) v = random.between(static_cast<int64_t>(std::ceil(low)), static_cast<int64_t>(high));
  return Tensor::fromInts(type, values);
}

namespace {

// Operators whose operands share more extents than chance finds: one letter an extent, maybe with a
// factor before it, or a number.
struct Layout {
  std::string_view op;
  std::vector<std::string_view> operands;
};
const std::vector<Layout> kLayouts = {
    {"Attention", {"b 2g l w", "b g s w", "b g s e", "l s"}},
    {"ByteAttention", {"b 2g l w", "b g s w", "b g s e", "l s"}},
    {"RNN", {"s b w", "d h w", "d h h", "d 2h", "b", "d b h"}},
    {"GRU", {"s b w", "d 3h w", "d 3h h", "d 6h", "b", "d b h"}},
    {"LSTM", {"s b w", "d 4h w", "d 4h h", "d 8h", "b", "d b h", "d b h", "d 3h"}},
    {"PackedMatMul", {"m k", "p k 2c"}},
    {"TransposedMatMul", {"m k", "m n"}},
    {"TapProducts", {"n 1 h w c", "n p k l c"}},
    {"BlockedConv", {"n b h w c", "p k l i 2c"}},
    {"ChannelsLastConv", {"n 1 h w c", "o k l c", "o"}},
    {"WinogradConv", {"n b h w c", "q p i 2c"}},
    {"DepthwiseConv", {"n b h w c", "b k l i c"}},
    {"NarrowMatMul", {"m k", "p f 2c 4"}},
    {"ByteMatMul", {"b m k", "b k n"}},
    {"ByteConv", {"n c h w", "o c k l", "o"}},
    {"BlockMatMul", {"m k", "p f 2c 4", "p g 2c", "1"}},
    {"NarrowConv", {"n b h w 4c", "p k l f 8c 4"}},
    {"ByteDepthwiseConv", {"n b h w c", "b k l c"}},
};

// One try.
class Draw {
public:
  Draw(Random& random, const RandomOptions& options) : random_(random), options_(options) {
    const int64_t extents = random_.between(1, 3);
    for (int64_t i = 0; i < extents; ++i) pool_.push_back(random_.chance(0.03) ? 0 : random_.between(1, 6));
    base_ = fromPool(random_.chance(0.5) ? random_.between(3, 4) : random_.between(0, 5));
    scale_ = static_cast<float>(random_.real(0.01, 1));
    offset_ = static_cast<int32_t>(random_.between(0, 20));
  }

  // The shape that everything else is drawn around.
  void setBase(const Shape& shape) { base_ = shape.dims(); }

  // The shape that an operator's layout gives an operand, if it has one.
  std::optional<std::vector<int64_t>> laidOut(const OpDef& op, const OperandDef& def) {
    for (const Layout& layout : kLayouts) {
      if (layout.op != op.name) continue;
      std::vector<int64_t> dims;
      int64_t factor = 1;
      for (const char c : std::string(layout.operands[static_cast<size_t>(&def - op.in.begin())]) + ' ') {
        if (c >= '1' && c <= '9') factor = c - '0';
        if (c == ' ' && factor != 1) {
          dims.push_back(factor);
          factor = 1;
        }
        if (c < 'a' || c > 'z') continue;
        int64_t& extent = letters_[static_cast<size_t>(c - 'a')];
        if (extent == 0) extent = random_.between(1, 3);
        dims.push_back(factor * extent);
        factor = 1;
      }
      return dims;
    }
    return std::nullopt;
  }

  Type operand(const OpDef& op, const OperandDef& def, bool first) {
    std::vector<int64_t> dims = laidOut(op, def).value_or(first ? base_ : relatedDims());
    // Weights are bytes or bf16 as the operand before them is.
    const bool paired = !first && op.name.starts_with("Narrow");
    const ElemKind kind = paired ? (narrow_ ? ElemKind::BFloat16 : ElemKind::Int8) : kindFor(def);
    narrow_ = kind == ElemKind::BFloat16;
    return typeOf(kind, limited(std::move(dims)));
  }

  Type typeOf(ElemKind kind, Shape shape) {
    return isQuantized(kind) ? quantizedType(kind, std::move(shape)) : Type(kind, std::move(shape));
  }

  // Whether an existing value of the kind may be the operand; bind settles its letter.
  bool accepts(const OperandDef& def, ElemKind kind) const {
    const std::optional<ElemKind>& bound = kinds_[static_cast<size_t>(def.typeVar)];
    return contains(def.kinds, kind) && (def.typeVar == 0 || !bound || *bound == kind);
  }
  void bind(const OperandDef& def, ElemKind kind) {
    if (def.typeVar != 0) kinds_[static_cast<size_t>(def.typeVar)] = kind;
  }

  AttrValue attribute(const AttrDef& def) {
    if (random_.chance(0.25)) return defaultValue(def);
    switch (def.kind) {
      case AttrKind::Int:
        return random_.between(-1, random_.chance(0.7) ? 3 : 8);
      case AttrKind::Bool:
        return random_.between(0, 1);
      case AttrKind::Float:
        return random_.real(def.number > 0 ? 0.01 : -2, 2);
      case AttrKind::Ints:
        return integers();
      case AttrKind::Floats:
        return reals(length());
      case AttrKind::Enum:
        return choice(def.choices);
      case AttrKind::Word:
        return words(random_.between(1, 4));
      case AttrKind::Elem:
        break;
    }
    return anyKind((KindSet{1} << kElemKinds) - 1);
  }

  // A list of this many entries.
  AttrValue listOf(const AttrDef& def, int64_t entries) {
    if (def.kind == AttrKind::Floats) return reals(entries);
    if (def.kind == AttrKind::Word) return words(entries);
    std::vector<int64_t> list(static_cast<size_t>(entries));
    for (int64_t& v : list) v = random_.between(0, 3);
    return list;
  }

private:
  int64_t fromPoolOne() { return random_.pick(pool_); }

  std::vector<int64_t> fromPool(int64_t rank) {
    std::vector<int64_t> dims(static_cast<size_t>(rank));
    for (int64_t& d : dims) d = fromPoolOne();
    return dims;
  }

  std::vector<int64_t> relatedDims() {
    std::vector<int64_t> dims = base_;
    switch (random_.between(0, 7)) {
      case 0:  // stretches to the base
        dims.erase(dims.begin(), dims.begin() + random_.between(0, static_cast<int64_t>(dims.size())));
        for (int64_t& d : dims) d = random_.chance(0.3) ? 1 : d;
        return dims;
      case 1:
        return dims.empty() ? dims : std::vector{random_.pick(dims)};
      case 2:
        return {};
      case 3:
        return fromPool(static_cast<int64_t>(dims.size()));
      case 4:
        return fromPool(random_.between(0, 4));
      case 5:
        if (!dims.empty())
          dims[static_cast<size_t>(random_.between(0, static_cast<int64_t>(dims.size()) - 1))] = fromPoolOne();
        return dims;
      case 6:  // a factor of a matrix product
        if (dims.size() >= 2) {
          std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
          dims.back() = fromPoolOne();
        }
        return dims;
      default:
        return dims;
    }
  }

  Shape limited(std::vector<int64_t> dims) {
    const auto elements = [&] { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); };
    while (elements() > options_.maxElements) *std::max_element(dims.begin(), dims.end()) = 1;
    return Shape(std::move(dims));
  }

  ElemKind anyKind(KindSet set) {
    if (contains(set, ElemKind::Float32) && random_.chance(0.6)) return ElemKind::Float32;
    std::vector<ElemKind> all;
    for (int k = 0; k < kElemKinds; ++k)
      if (contains(set, static_cast<ElemKind>(k))) all.push_back(static_cast<ElemKind>(k));
    return random_.pick(all);
  }

  ElemKind kindFor(const OperandDef& def) {
    const KindSet wanted = def.kinds & options_.kinds;
    if (def.typeVar == 0) return anyKind(wanted != 0 ? wanted : def.kinds);
    std::optional<ElemKind>& kind = kinds_[static_cast<size_t>(def.typeVar)];
    if (!kind) kind = anyKind(wanted != 0 ? wanted : def.kinds);
    return *kind;
  }

  // Mostly the same parameters for all operands.
  Type quantizedType(ElemKind kind, Shape shape) {
    QuantParams params{.axis = -1, .scales = {scale_}, .offsets = {offset_}};
    if (shape.rank() > 0 && random_.chance(0.3)) {
      params.axis = static_cast<int>(random_.between(0, shape.rank() - 1));
      const auto extent = static_cast<size_t>(shape[params.axis]);
      params.scales.assign(extent, scale_);
      params.offsets.assign(extent, offset_);
    }
    return *Type::quantized(kind, std::move(shape), std::move(params));
  }

  std::vector<double> reals(int64_t entries) {
    std::vector<double> values(static_cast<size_t>(entries));
    for (double& v : values) v = random_.real(0.01, 1);
    return values;
  }

  // The words of records are lists of functions.
  std::string words(int64_t entries) {
    static const std::vector<std::string> kFunctions = {"Relu", "Tanh", "Sigmoid", "Elu", "Softsign", "HardSigmoid"};
    std::string list;
    for (; entries > 0; --entries) list += (list.empty() ? "" : ",") + random_.pick(kFunctions);
    return list;
  }

  int64_t length() {
    const auto rank = static_cast<int64_t>(base_.size());
    const int64_t spatial = std::max<int64_t>(rank - 2, 0);
    std::vector<int64_t> lengths{1, rank, spatial, 2 * spatial};
    if (rank > 0) lengths.push_back(random_.pick(base_));
    return random_.pick(lengths);
  }

  std::vector<int64_t> integers() {
    const auto rank = static_cast<int64_t>(base_.size());
    std::vector<int64_t> list;
    switch (random_.between(0, 6)) {
      case 0:
        return list;
      case 1:
        return std::vector<int64_t>(static_cast<size_t>(length()), random_.between(0, 1));
      case 2:
        list.resize(static_cast<size_t>(length()));
        for (int64_t& v : list) v = random_.between(random_.chance(0.1) ? -2 : 0, 3);
        return list;
      case 3:  // some axes, in order
        for (int64_t axis = 0; axis < rank; ++axis)
          if (random_.chance(0.5)) list.push_back(axis);
        return list;
      case 4:  // all axes, in any order
        list.resize(static_cast<size_t>(rank));
        std::iota(list.begin(), list.end(), 0);
        shuffle(list);
        return list;
      case 5:  // the base's elements under another shape
        list = base_;
        shuffle(list);
        while (list.size() > 1 && random_.chance(0.4)) {
          list[list.size() - 2] *= list.back();
          list.pop_back();
        }
        if (random_.chance(0.3)) list.insert(list.begin(), 1);
        return list;
      default:  // extents at most as large, or stretched from 1
        list = base_;
        for (int64_t& v : list) v = v == 1 ? fromPoolOne() : random_.chance(0.5) ? v : random_.between(0, v);
        if (random_.chance(0.2)) list.insert(list.begin(), fromPoolOne());
        return list;
    }
  }

  void shuffle(std::vector<int64_t>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<size_t>(random_.between(0, static_cast<int64_t>(i) - 1))]);
  }

  std::string choice(std::string_view choices) {
    std::vector<std::string> all(1);
    for (const char c : choices) {
      if (c == '|')
        all.emplace_back();
      else
        all.back() += c;
    }
    return random_.pick(all);
  }

  Random& random_;
  const RandomOptions& options_;
  bool narrow_ = false;  // whether the last operand was of bf16
  std::vector<int64_t> pool_;
  std::vector<int64_t> base_;
  std::array<int64_t, 26> letters_{};
  float scale_ = 1;
  int32_t offset_ = 0;
  std::array<std::optional<ElemKind>, 128> kinds_{};
};

struct Candidate {
  OpUse use;
  std::vector<Value> existing;  // empty where the operand is made for the node, or absent
};

bool small(const std::vector<Type>& types, int64_t most) {
  return std::all_of(types.begin(), types.end(), [&](const Type& t) { return t.elements() <= most; });
}

// The number that stands at a position of a message, which moves past it.
std::optional<int64_t> numberAt(std::string_view& text) {
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

std::string_view quotedName(std::string_view text) {
  const size_t start = std::min(text.find('\''), text.size() - 1) + 1;
  return text.substr(start, text.find('\'', start) - start);
}

// "expected shape [2,3] of 'bias', ..."
bool mendShape(std::string_view message, const OpDef& op, Draw& draw, const RandomOptions& options, Candidate& c) {
  std::vector<int64_t> dims;
  for (message.remove_prefix(std::min(message.find('['), message.size() - 1)); !message.starts_with(']');) {
    message.remove_prefix(1);
    const std::optional<int64_t> dim = numberAt(message);
    if (dim) dims.push_back(*dim);
    if (message.empty()) return false;
  }
  const Result<Shape> shape = Shape::create(std::move(dims));
  for (size_t i = 0; i < c.use.in.size() && shape.ok() && shape->elements() <= options.maxElements; ++i) {
    if (op.in[std::min(static_cast<int>(i), op.in.size() - 1)].name != quotedName(message)) continue;
    if (!c.use.in[i] || c.existing[i]) return false;
    c.use.in[i] = draw.typeOf(c.use.in[i]->kind(), *shape);
    return true;
  }
  return false;
}

// "expected 2 entries in 'pads', ...", "expected 3 for 'lanes', ..."
bool mendAttribute(std::string_view message, Draw& draw, Candidate& c) {
  constexpr int64_t kMost = 256;
  const std::optional<int64_t> count = numberAt(message);
  const int index = c.use.attrs.indexOf(quotedName(message));
  if (!count || *count < 0 || *count > kMost || index < 0) return false;
  const AttrDef& def = c.use.attrs.op().attrs[index];
  if (def.kind == AttrKind::Int) c.use.attrs.setAt(index, *count);
  if (def.kind != AttrKind::Ints && def.kind != AttrKind::Floats && def.kind != AttrKind::Word)
    return def.kind == AttrKind::Int;
  c.use.attrs.setAt(index, draw.listOf(def, *count));
  return true;
}

bool mend(std::string_view message, const OpDef& op, Draw& draw, const RandomOptions& options, Candidate& c) {
  constexpr std::string_view kExpected = "expected ";
  if (!message.starts_with(kExpected)) return false;
  message.remove_prefix(kExpected.size());
  return message.starts_with("shape [") ? mendShape(message, op, draw, options, c) : mendAttribute(message, draw, c);
}

Result<std::vector<Type>> inferred(const OpUse& use) {
  std::vector<const Type*> types;
  for (const std::optional<Type>& type : use.in) types.push_back(type ? &*type : nullptr);
  while (!types.empty() && types.back() == nullptr) types.pop_back();
  return inferTypes(use.attrs, types);
}

// Operand 0 and some others may be values that exist.
std::optional<Candidate> tryOnce(Random& random, const OpDef& op, const RandomOptions& options,
                                 const std::vector<Value>& values) {
  Draw draw(random, options);
  Candidate c;
  const auto take = [&](const OperandDef& def) {
    const bool first = c.use.in.empty();
    std::vector<Value> fitting;
    if (def.kinds != kinds::indices && random.chance(first ? 0.9 : 0.5))
      for (const Value v : values)
        if (draw.accepts(def, v.kind()) && v.type().elements() <= options.maxElements) fitting.push_back(v);
    if (!fitting.empty()) {
      const Value v = random.pick(fitting);
      if (first) draw.setBase(v.shape());
      draw.bind(def, v.kind());
      c.use.in.emplace_back(v.type());
      c.existing.push_back(v);
      return;
    }
    c.use.in.emplace_back(draw.operand(op, def, first));
    c.existing.emplace_back();
  };
  for (const OperandDef& def : op.in) {
    if (def.arity == Arity::Optional && random.chance(0.5)) {
      c.use.in.emplace_back();
      c.existing.emplace_back();
      continue;
    }
    take(def);
    if (def.arity == Arity::Variadic)
      for (int64_t more = random.between(0, 2); more > 0; --more) take(def);
  }
  c.use.attrs = Attrs(op);
  for (int i = 0; i < op.attrs.size(); ++i) c.use.attrs.setAt(i, draw.attribute(op.attrs[i]));
  Result<std::vector<Type>> results = inferred(c.use);
  for (int mends = 0; mends < 12 && !results.ok(); ++mends) {
    if (!mend(results.error().message, op, draw, options, c)) return std::nullopt;
    results = inferred(c.use);
  }
  if (!results.ok() || !small(*results, options.maxElements)) return std::nullopt;
  c.use.out = *std::move(results);
  return c;
}

std::optional<Candidate> drawCandidate(Random& random, const OpDef& op, const RandomOptions& options,
                                       const std::vector<Value>& values, int tries) {
  for (int i = 0; i < tries; ++i)
    if (std::optional<Candidate> found = tryOnce(random, op, options, values)) return found;
  return std::nullopt;
}

// Recent results, to chain, and what they were computed from.
std::vector<Value> valuesOf(const Function& function) {
  std::vector<Value> values;
  int left = 12;
  for (auto it = function.nodes().rbegin(); it != function.nodes().rend() && left > 0; ++it, --left) {
    for (int i = 0; i < (*it)->resultCount(); ++i) values.push_back((*it)->result(i));
    for (const Value v : (*it)->inputs())
      if (v && v.node->op() == Op::Placeholder) values.push_back(v);
  }
  return values;
}

// Requests for gradients speak of nodes, not of values: they run only once they are differentiated.
bool hasNode(const OpDef& op) { return op.kind != OpKind::Storage && op.kind != OpKind::Derivative; }

}  // namespace

std::optional<OpUse> drawUse(Random& random, const OpDef& op, const RandomOptions& options) {
  std::optional<Candidate> found = drawCandidate(random, op, options, {}, options.tries);
  if (!found) return std::nullopt;
  return std::move(found->use);
}

RandomGraph::RandomGraph(Module& module, uint64_t seed, RandomOptions options)
    : module_(module), random_(seed), options_(std::move(options)) {}

std::string RandomGraph::name() {
  static const std::vector<std::string> kOdd = {"a b", "a:1", "\"", "\\", "\xff\xfe",           "ü",   "\n", "%x",
                                                "@",   "_",   "#",  "if", std::string(1, '\0'), "0x1", "-",  "/a/b",
                                                "a,b", "{}",  "v.1"};
  return options_.oddNames && random_.chance(0.5) ? random_.pick(kOdd) : std::string();
}

Value RandomGraph::fresh(const OperandDef& def, const Type& type, const Shape& data) {
  if (def.kinds == kinds::indices) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const int64_t d : data.dims()) least = d > 0 ? std::min(least, d) : least;
    const double last = least == std::numeric_limits<int64_t>::max() ? 0 : static_cast<double>(least - 1);
    return module_.addConstant(name(), randomTensor(random_, type, 0, last))->result();
  }
  if (random_.chance(options_.constants)) return module_.addConstant(name(), randomTensor(random_, type))->result();
  return module_.addPlaceholder(name(), type)->result();
}

Node* RandomGraph::addNode(Function& function, const OpDef& op) { return place(function, op, options_.tries); }

Node* RandomGraph::place(Function& function, const OpDef& op, int tries) {
  const auto found =
      drawCandidate(random_, op, options_, options_.chains ? valuesOf(function) : std::vector<Value>{}, tries);
  if (!found) return nullptr;
  std::vector<Value> inputs;
  for (size_t i = 0; i < found->use.in.size(); ++i) {
    const std::optional<Type>& type = found->use.in[i];
    const OperandDef& def = op.in[std::min(static_cast<int>(i), op.in.size() - 1)];
    Value v = found->existing[i];
    if (!v && type) v = fresh(def, *type, found->use.in[0] ? found->use.in[0]->shape() : Shape{});
    inputs.push_back(v);
  }
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  Node* node = function.add(found->use.attrs, found->use.out, inputs, name());
  if (random_.chance(options_.predicates)) {
    const Type type(ElemKind::Bool,
                    random_.chance(0.5) || node->type().rank() == 0 ? Shape{} : Shape{node->type().dim(0)});
    node->setPredicate(module_.addPlaceholder(name(), type)->result());
  }
  return node;
}

Function* RandomGraph::addFunction(std::string name, int nodes) {
  Function* function = module_.addFunction(std::move(name));
  std::vector<const OpDef*> ops;
  for (const OpDef* op : allOps())
    if (hasNode(*op) && (!options_.allowed || options_.allowed(*op))) ops.push_back(op);
  AGLOW_CHECK(!ops.empty(), "no operator is allowed");
  // An operator that does not fit what is there gives way to another one soon.
  constexpr int kTries = 300;
  for (int attempts = 0; static_cast<int>(function->size()) < nodes && attempts < 50 * nodes; ++attempts)
    place(*function, *random_.pick(ops), kTries);
  std::vector<Value> unused;
  for (const auto& node : function->nodes())
    for (int i = 0; i < node->resultCount(); ++i)
      if (node->useCount(i) == 0) unused.push_back(node->result(i));
  for (const Value v : unused) {
    Placeholder* out = module_.addPlaceholder("out", v.type());
    function->add(Attrs(opDef(Op::Save)), {}, {v, out->result()}, "save");
  }
  return function;
}

}  // namespace aglow
