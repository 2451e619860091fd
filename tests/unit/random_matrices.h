// Random functions of matrices that instructions can be fused in: chains, rows, products, views, predicates and state.
#pragma once

#include <string>
#include <vector>

#include "graph/builder.h"
#include "support/rng.h"

namespace aglow::testing_support {

// Rows, columns, scalars and whole matrices that are combined at random; some are saved, some into a state that is
// read.
class RandomMatrices {
public:
  struct Options {
    int64_t rows = 3, columns = 4;
    bool narrow = true;  // values go through f16 now and then
  };

  RandomMatrices(Module& module, Rng& rng, const Options& options)
      : b_(*module.addFunction("main")), rng_(rng), options_(options), whole_{options.rows, options.columns} {
    const auto input = [&](const char* name, Shape shape) {
      values_.push_back(b_.input(name, Type(ElemKind::Float32, std::move(shape))));
    };
    input("x", whole_);
    input("row", {options.rows, 1});
    input("column", {options.columns});
    input("one", {});
    condition_ = b_.input("condition", Type(ElemKind::Bool, whole_));
    predicate_ = b_.input("predicate", Type(ElemKind::Bool, Shape{}));
    square_ = b_.input("square", Type(ElemKind::Float32, Shape{options.columns, options.columns}));
    state_ = b_.input("state", Type(ElemKind::Float32, whole_));
  }

  const Function& grow(int count) {
    values_.push_back(state_);
    for (int i = 0; i < count; ++i) values_.push_back(next());
    for (size_t i = 0; i < values_.size(); ++i)
      if (i + 3 >= values_.size() || rng_.between(0, 9) == 0) b_.output("y" + std::to_string(i), values_[i]);
    return b_.function();
  }

private:
  bool isWhole(Value v) const { return v.shape() == whole_; }
  // Late values more often, so that chains grow long.
  Value any() {
    const auto size = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(rng_.flip() ? rng_.between(std::max<int64_t>(0, size - 4), size - 1)
                                                   : rng_.between(0, size - 1))];
  }
  Value whole() {
    const Value v = any();
    return isWhole(v) ? v : b_.add(v, values_.front());
  }

  Value next() {
    static const std::vector<std::string_view> kKinds = {"sum", "mean", "max", "min"};
    switch (rng_.between(0, 13)) {
      case 0:
      case 1:
        return b_.abs(any());
      case 2:
        return b_.tanh(any());
      case 3:
      case 4:
        return b_.add(whole(), any());
      case 5:
        return b_.mul(b_.tanh(any()), any());
      case 6:
        return b_.max(whole(), any());
      case 7:
        return b_.where(condition_, whole(), whole());
      case 8:
        if (!options_.narrow) return b_.exp(b_.tanh(any()));
        return b_.cast(b_.cast(any(), {.to = ElemKind::Float16}), {.to = ElemKind::Float32});
      case 9:
      case 10:
        if (rng_.between(0, 3) != 0) return b_.reduced(whole(), rng_.pick(kKinds), {1});
        return b_.reshaped(b_.abs(b_.reduced(whole(), rng_.pick(kKinds), {1}, false)), {options_.rows, 1});
      case 11:
        return rng_.flip() ? b_.matMul(whole(), square_)
                           : b_.reshaped(b_.reshaped(whole(), {options_.columns, options_.rows}), whole_.dims());
      case 12:
        return rng_.flip() ? b_.reduced(whole(), "sum", {0}) : b_.splat({.value = 2, .shape = whole_.dims()});
      default:
        if (rng_.flip()) {
          b_.when(predicate_);
          const Value v = b_.neg(whole());
          b_.when({});
          return v;
        }
        b_.save(b_.abs(whole()), static_cast<Placeholder*>(state_.node));
        return b_.neg(state_);
    }
  }

  Builder b_;
  Rng& rng_;
  Options options_;
  Shape whole_;
  std::vector<Value> values_;
  Value condition_, predicate_, square_, state_;
};

}  // namespace aglow::testing_support
