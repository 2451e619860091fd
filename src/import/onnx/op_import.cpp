#include "import/onnx/op_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/graph_import.h"
#include "import/onnx/host_values.h"
#include "import/onnx/tensor_data.h"
#include "support/check.h"

namespace aglow::onnx {

OpImport::OpImport(GraphImport& graph, const Node& proto, int64_t opset, Builder& builder,
                   std::vector<Imported> operands)
    : b(builder), node(proto), version(opset), graph_(graph), operands_(std::move(operands)) {}

bool OpImport::has(int i) const {
  return i < inputs() && operands_[static_cast<size_t>(i)].kind != Imported::Kind::None;
}

const Imported& OpImport::operand(int i) const {
  static const Imported none = Imported::none();
  return i < inputs() ? operands_[static_cast<size_t>(i)] : none;
}

Value OpImport::in(int i) const {
  const Imported& value = operand(i);
  if (value.kind == Imported::Kind::None)
    fail(Code::BadNode, fmt::format("input {} is required but missing (the node has {})", i, inputs()));
  if (value.kind == Imported::Kind::Labelled) throw BuildFailure(needsRuntime());
  if (value.kind != Imported::Kind::Tensor)
    fail(Code::BadNode, fmt::format("input {} is a sequence; expected a tensor", i));
  return value.tensor;
}

std::vector<Value> OpImport::all() const {
  std::vector<Value> values;
  for (int i = 0; i < inputs(); ++i) values.push_back(in(i));
  return values;
}

Tensor OpImport::constant(Value v) { return graph_.constantOf(v); }

int64_t OpImport::constantInt(int i) {
  const std::vector<int64_t> values = constantInts(i);
  if (values.size() != 1)
    fail(Code::BadNode, fmt::format("input {} must hold one element, got {}", i, in(i).type().text()));
  return values.front();
}

double OpImport::constantReal(int i) {
  const std::vector<double> values = constant(i).doubles();
  if (values.size() != 1)
    fail(Code::BadNode, fmt::format("input {} must hold one element, got {}", i, in(i).type().text()));
  return values.front();
}

std::vector<int64_t> OpImport::intsFromInputOrAttr(int i, std::string_view name, std::vector<int64_t> otherwise) {
  if (has(i)) return constantInts(i);
  return ints(name, std::move(otherwise));
}

const Attribute* OpImport::attr(std::string_view name) const {
  for (const Attribute& a : node.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

namespace {

constexpr std::string_view kTypeNames[] = {"undefined", "a float",         "an int",         "a string", "a tensor",
                                           "a graph",   "floats",          "ints",           "strings",  "tensors",
                                           "graphs",    "a sparse tensor", "sparse tensors", "a type",   "types"};

std::string_view typeName(AttributeType type) {
  const auto index = static_cast<size_t>(type);
  return index < std::size(kTypeNames) ? kTypeNames[index] : "unknown";
}

// The attribute if it is there and of the type; null if it is absent.
const Attribute* typed(const OpImport& c, std::string_view name, AttributeType type) {
  const Attribute* a = c.attr(name);
  if (a != nullptr && a->type != type)
    fail(Code::BadNode, fmt::format("attribute '{}' is {}; expected {}", name, typeName(a->type), typeName(type)));
  return a;
}

[[noreturn]] void missing(std::string_view name) {
  fail(Code::BadNode, fmt::format("attribute '{}' is required but missing", name));
}

}  // namespace

int64_t OpImport::integer(std::string_view name, std::optional<int64_t> otherwise) const {
  if (const Attribute* a = typed(*this, name, AttributeType::Int)) return a->i;
  if (!otherwise) missing(name);
  return *otherwise;
}

bool OpImport::flag(std::string_view name, bool otherwise) const {
  const int64_t value = integer(name, otherwise ? 1 : 0);
  if (value != 0 && value != 1) fail(Code::BadNode, fmt::format("expected '{}' to be 0 or 1, got {}", name, value));
  return value == 1;
}

double OpImport::real(std::string_view name, std::optional<double> otherwise) const {
  if (const Attribute* a = typed(*this, name, AttributeType::Float)) return static_cast<double>(a->f);
  if (!otherwise) missing(name);
  return *otherwise;
}

std::string OpImport::word(std::string_view name, std::optional<std::string> otherwise) const {
  if (const Attribute* a = typed(*this, name, AttributeType::String)) return a->s;
  if (!otherwise) missing(name);
  return *otherwise;
}

std::vector<int64_t> OpImport::ints(std::string_view name, std::vector<int64_t> otherwise) const {
  const Attribute* a = typed(*this, name, AttributeType::Ints);
  return a != nullptr ? a->ints : std::move(otherwise);
}

std::vector<double> OpImport::reals(std::string_view name, std::vector<double> otherwise) const {
  const Attribute* a = typed(*this, name, AttributeType::Floats);
  return a != nullptr ? std::vector<double>(a->floats.begin(), a->floats.end()) : std::move(otherwise);
}

std::vector<std::string> OpImport::words(std::string_view name, std::vector<std::string> otherwise) const {
  const Attribute* a = typed(*this, name, AttributeType::Strings);
  return a != nullptr ? a->strings : std::move(otherwise);
}

ElemKind OpImport::elem(std::string_view name, std::optional<ElemKind> otherwise) const {
  const Attribute* a = typed(*this, name, AttributeType::Int);
  if (a == nullptr && !otherwise) missing(name);
  if (a == nullptr) return *otherwise;
  Result<ElemKind> kind = elemKindOf(a->i, Code::BadNode);
  if (!kind.ok()) throw BuildFailure(std::move(kind).error().at(fmt::format("attribute '{}'", name)));
  return *kind;
}

Tensor OpImport::tensor(std::string_view name) const {
  const Attribute* a = attr(name);
  if (a == nullptr || a->type != AttributeType::SparseTensor) a = typed(*this, name, AttributeType::Tensor);
  if (a == nullptr || (a->t == nullptr && a->sparse == nullptr)) missing(name);
  return orFail(graph_.tensorOf(*a));
}

const Graph& OpImport::graph(std::string_view name) const {
  const Attribute* a = typed(*this, name, AttributeType::Graph);
  if (a == nullptr || a->g == nullptr) missing(name);
  return *a->g;
}

void OpImport::out(int i, Imported v) {
  if (static_cast<int>(results_.size()) <= i) results_.resize(static_cast<size_t>(i) + 1, Imported::none());
  results_[static_cast<size_t>(i)] = std::move(v);
}

int64_t OpImport::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) fail(Code::BadNode, fmt::format("axis {} is out of range for rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> OpImport::axes(std::vector<int64_t> list, int64_t rank) const {
  for (int64_t& a : list) a = axis(a, rank);
  std::sort(list.begin(), list.end());
  if (const auto twice = std::adjacent_find(list.begin(), list.end()); twice != list.end())
    fail(Code::BadNode, fmt::format("axis {} is named twice", *twice));
  return list;
}

std::vector<Imported> OpImport::inlineGraph(const Graph& graph, const std::vector<Imported>& inputs) {
  // What the nested nodes are called is their own affair; afterwards the builder speaks for this node again.
  const std::string name = b.name();
  std::vector<Imported> outputs = graph_.importNested(graph, inputs, placeWithin(node, graph));
  b.named(name);
  return outputs;
}

std::optional<std::vector<Imported>> OpImport::tryInline(const Graph& graph) {
  const std::string name = b.name();
  std::optional<std::vector<Imported>> outputs = graph_.tryNested(graph, placeWithin(node, graph));
  b.named(name);
  return outputs;
}

int64_t OpImport::channelBlock() const { return graph_.channelBlock(); }
void OpImport::depart(std::string message, std::string meaning) const {
  graph_.depart(node, {.fault = {.code = Code::BadNode, .message = std::move(message)}, .meaning = std::move(meaning)});
}

void OpImport::leaveToRuntime() const {
  if (graph_.mayCut()) throw NeedsValue{};
}

std::vector<Imported> OpImport::standard(const Node& as, int64_t opset, std::vector<Imported> operands) {
  const OpRow* row = findRow("", as.opType, opset);
  AGLOW_CHECK(row != nullptr && row->handler != nullptr, "no such standard operator");
  OpImport op(graph_, as, opset, b, std::move(operands));
  row->handler(op);
  return std::move(op.results());
}

}  // namespace aglow::onnx
