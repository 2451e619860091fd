// The pleasant way to make graphs: one method per operator, types inferred and checked on the way.
#pragma once

#include <stdexcept>
#include <string>

#include "graph/module.h"
#include "graph/op_builders.h"

namespace aglow {

// What a Builder throws when a use breaks its operator's rules; building() turns it into a Result.
class BuildFailure : public std::runtime_error {
public:
  explicit BuildFailure(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  const Error& error() const { return error_; }

private:
  Error error_;
};

[[noreturn]] void fail(Code code, std::string message, std::string hint = {});

// The value of a Result, or a BuildFailure.
template <class T>
T orFail(Result<T> result) {
  if (!result.ok()) throw BuildFailure(std::move(result).error());
  return *std::move(result);
}

class Builder : public OpBuilders<Builder> {
public:
  explicit Builder(Function& function) : function_(&function) {}

  Function& function() const { return *function_; }
  Module& module() const { return function_->module(); }

  // New nodes stand before this one (null: at the end), carry this name, and have this predicate.
  Builder& before(Node* node);
  Builder& named(std::string_view name);
  Builder& when(Value predicate);
  const std::string& name() const { return name_; }

  // Any operator, for code that is generic over the records.
  Node* make(std::vector<Value> inputs, Attrs attrs);

  // Storage. An output is a placeholder of its own and the Save that writes it.
  Value input(std::string_view name, Type type);
  Placeholder* state(std::string_view name, Tensor initial);
  Value constant(Tensor tensor, std::string_view name = {});
  void output(std::string_view name, Value value);
  void save(Value value, Placeholder* target);

  // A scalar constant of a kind; the same value for every element.
  Value scalar(ElemKind kind, double value);
  Value scalarLike(Value like, double value) { return scalar(like.kind(), value); }
  // An i64 vector constant.
  Value ints(const std::vector<int64_t>& values) { return constant(Tensor::ints(values)); }

  // Frequent forms.
  Value reshaped(Value x, std::vector<int64_t> shape);   // x itself when it has the shape already
  Value transposed(Value x, std::vector<int64_t> perm);  // x itself when perm is the identity
  Value casted(Value x, ElemKind to);                    // x itself when it is of the kind
  Value reduced(Value x, std::string_view kind, std::vector<int64_t> axes, bool keepDims = true);

private:
  Function* function_;
  Node* before_ = nullptr;
  std::string name_;
  Value predicate_;
};

// Runs code that builds, and gives its value or the error it met.
template <class F>
auto building(F&& code) -> Result<decltype(code())> {
  try {
    return code();
  } catch (const BuildFailure& failure) {
    return failure.error();
  }
}

}  // namespace aglow
