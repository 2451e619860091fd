// What an operator's handler sees of the ONNX node it imports: operands, attributes, constants, and where results go.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/interface.h"
#include "import/onnx/proto.h"

namespace aglow::onnx {

// A value of the model while it is imported. Sequences, optionals and what labels say exist only here: the graph has
// tensors alone. No operator takes a labelled tensor for a plain one.
struct Imported {
  enum class Kind : uint8_t { Tensor, Sequence, None, Labelled };
  Kind kind = Kind::Tensor;
  Value tensor;
  std::vector<Imported> items;
  // Of integers that stand for real numbers, as operators of Caffe2 pass them on: (integer - zero) * scale.
  struct Scale {
    float scale = 1;
    int32_t zero = 0;
  };
  std::optional<Scale> scale = {};
  std::shared_ptr<const Labels> labels = {};  // Labelled

  static Imported of(Value v) { return {.kind = Kind::Tensor, .tensor = v}; }
  static Imported sequence(std::vector<Imported> items) { return {.kind = Kind::Sequence, .items = std::move(items)}; }
  static Imported none() { return {.kind = Kind::None}; }
  static Imported labelled(Value v, Labels labels) {
    return {.kind = Kind::Labelled, .tensor = v, .labels = std::make_shared<const Labels>(std::move(labels))};
  }

  bool hasTensor() const { return kind == Kind::Tensor || kind == Kind::Labelled; }
};

// Thrown when a shape depends on a value that is not part of the program yet.
struct NeedsValue {
  Value value;                      // none: the node is better left to the runtime
  std::vector<std::string> inputs;  // that it is computed from
};

class GraphImport;

class OpImport {
public:
  OpImport(GraphImport& graph, const Node& node, int64_t version, Builder& builder, std::vector<Imported> operands);

  Builder& b;  // stands at the end of the function and names what it builds after the node
  const Node& node;
  const int64_t version;  // of the opset that the node's domain has in its scope

  // ---- operands
  int inputs() const { return static_cast<int>(operands_.size()); }
  bool has(int i) const;  // present, and not an empty optional
  const Imported& operand(int i) const;
  Value in(int i) const;  // a tensor; BadNode when it is missing or none
  Value optional(int i) const { return has(i) ? in(i) : Value{}; }
  std::vector<Value> all() const;  // all operands as tensors
  // The value of an operand, known when compiling: throws NeedsValue when it depends on a run-time input.
  Tensor constant(int i) { return constant(in(i)); }
  Tensor constant(Value v);
  std::vector<int64_t> constantInts(int i) { return constant(i).toInts(); }
  int64_t constantInt(int i);  // exactly one element
  double constantReal(int i);
  // As constantInts, or the attribute of older opsets, or the default.
  std::vector<int64_t> intsFromInputOrAttr(int i, std::string_view attr, std::vector<int64_t> otherwise = {});

  // ---- attributes; BadNode when one has another type
  const Attribute* attr(std::string_view name) const;
  bool hasAttr(std::string_view name) const { return attr(name) != nullptr; }
  int64_t integer(std::string_view name, std::optional<int64_t> otherwise = std::nullopt) const;
  bool flag(std::string_view name, bool otherwise = false) const;  // 0 or 1; BadNode when it is another number
  double real(std::string_view name, std::optional<double> otherwise = std::nullopt) const;
  std::string word(std::string_view name, std::optional<std::string> otherwise = std::nullopt) const;
  std::vector<int64_t> ints(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view name, std::vector<double> otherwise = {}) const;
  std::vector<std::string> words(std::string_view name, std::vector<std::string> otherwise = {}) const;
  ElemKind elem(std::string_view name, std::optional<ElemKind> otherwise = std::nullopt) const;
  Tensor tensor(std::string_view name) const;  // sparse ones too
  const Graph& graph(std::string_view name) const;

  // ---- results
  bool wants(int i) const {
    return i < static_cast<int>(node.outputs.size()) && !node.outputs[static_cast<size_t>(i)].empty();
  }
  void out(int i, Value v) { out(i, Imported::of(v)); }
  void out(int i, Imported v);
  void out(Value v) { out(0, v); }
  std::vector<Imported>& results() { return results_; }

  // ---- helpers
  // An axis in [-rank, rank), made positive; BadNode otherwise.
  int64_t axis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> axes(std::vector<int64_t> axes, int64_t rank) const;  // ascending, no duplicates
  // Imports a nested graph (of If, Loop, Scan) with these values for its inputs; gives its outputs.
  std::vector<Imported> inlineGraph(const Graph& graph, const std::vector<Imported>& inputs);
  // The same without inputs, and nothing where the graph cannot be imported, which leaves no trace.
  std::optional<std::vector<Imported>> tryInline(const Graph& graph);
  // What the standard operator of this node makes of operands: how other operators are expressed by standard ones.
  std::vector<Imported> standard(const Node& as, int64_t opset, std::vector<Imported> operands);
  // How many nodes the function has by now, for limits on unrolling.
  size_t functionSize() const { return b.function().size(); }
  // Of models with channels in blocks (nchwc.h).
  int64_t channelBlock() const;
  // The node departs from the standard, and is taken as `meaning` says; fails where that is not accepted.
  void depart(std::string message, std::string meaning) const;
  // Where a model may be cut, leaves the node to be run alone.
  void leaveToRuntime() const;

private:
  GraphImport& graph_;
  std::vector<Imported> operands_;
  std::vector<Imported> results_;
};

using Handler = void(OpImport&);

// What a node needs whose result's shape depends on a run-time value, when a model may be cut into parts.
enum class AtRunTime : uint8_t {
  Freeze,  // the part after the cut is compiled for that value
  Alone,   // the node is run by itself between two parts, which know only its result's type
};

// How an ONNX operator becomes nodes, or why it cannot. The first row whose range holds the version is taken.
struct OpRow {
  std::string_view name;
  Handler* handler;
  int64_t since = 1;
  int64_t until = INT64_MAX;  // last version
  std::string_view domain = {};
  std::string_view refusal = {};  // why there is no handler
  AtRunTime atRunTime = AtRunTime::Freeze;
};

// The row, with its nodes run alone where a model is cut at them.
constexpr OpRow alone(OpRow row) {
  row.atRunTime = AtRunTime::Alone;
  return row;
}

// Operators of the own domain (own_domain.h), by their records.
Handler importOwnOperator;

// The row for an operator, or null. Operators that a record names (OpDef::onnx) are imported by their record.
const OpRow* findRow(std::string_view domain, std::string_view name, int64_t version);
// The version of a domain that a model uses without importing it; nothing when the domain is not known.
std::optional<int64_t> undeclaredVersion(std::string_view domain);
// What to do about an operator without a row: another version or domain that has it, or a name that is meant.
std::string alternativeTo(std::string_view domain, std::string_view name);
// All operators that can be imported, "domain::name" for others than the standard domain, in alphabetical order.
std::vector<std::string> supportedOperators();

}  // namespace aglow::onnx
