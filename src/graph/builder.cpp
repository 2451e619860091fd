#include "graph/builder.h"

#include <algorithm>
#include <numeric>

#include "ops/all_ops.h"

namespace aglow {

void fail(Code code, std::string message, std::string hint) {
  throw BuildFailure({.code = code, .message = std::move(message), .where = {}, .hint = std::move(hint)});
}

Builder& Builder::before(Node* node) {
  before_ = node;
  return *this;
}

Builder& Builder::named(std::string_view name) {
  name_ = name;
  return *this;
}

Builder& Builder::when(Value predicate) {
  predicate_ = predicate;
  return *this;
}

Node* Builder::make(std::vector<Value> inputs, Attrs attrs) {
  while (!inputs.empty() && !inputs.back()) inputs.pop_back();
  std::vector<const Type*> types;
  types.reserve(inputs.size());
  for (const Value v : inputs) types.push_back(v ? &v.type() : nullptr);
  std::vector<Type> results = orFail(inferTypes(attrs, types));
  Node* node = function_->add(std::move(attrs), std::move(results), inputs, name_, before_);
  if (predicate_) node->setPredicate(predicate_);
  return node;
}

Value Builder::input(std::string_view name, Type type) {
  return module().addPlaceholder(name, std::move(type))->result();
}

Placeholder* Builder::state(std::string_view name, Tensor initial) {
  return module().addState(name, std::move(initial));
}

Value Builder::constant(Tensor tensor, std::string_view name) {
  return module().addConstant(name.empty() ? std::string_view(name_) : name, std::move(tensor))->result();
}

void Builder::output(std::string_view name, Value value) { save(value, module().addPlaceholder(name, value.type())); }

void Builder::save(Value value, Placeholder* target) {
  if (value.type() != target->type())
    fail(Code::BadNode,
         "saving a " + value.type().text() + " into '" + target->name() + "' of type " + target->type().text());
  function_->add(Attrs(opDef(Op::Save)), {}, {value, target->result()}, "save", nullptr);
}

Value Builder::scalar(ElemKind kind, double value) { return constant(Tensor::scalar(kind, value)); }

Value Builder::reshaped(Value x, std::vector<int64_t> shape) {
  if (x.shape().dims() == shape) return x;
  return reshape(x, {.shape = std::move(shape)});
}

Value Builder::transposed(Value x, std::vector<int64_t> perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  return transpose(x, {.perm = std::move(perm)});
}

Value Builder::casted(Value x, ElemKind to) { return x.kind() == to ? x : cast(x, {.to = to}); }

Value Builder::reduced(Value x, std::string_view kind, std::vector<int64_t> axes, bool keepDims) {
  std::sort(axes.begin(), axes.end());
  return reduce(x, {.kind = std::string(kind), .axes = std::move(axes), .keepdims = keepDims});
}

}  // namespace aglow
