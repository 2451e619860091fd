// Type rules of recurrent layers.
#include <fmt/format.h>

#include "ops/recurrent.h"
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

namespace {

Types recurrent(const InferContext& c, int64_t gates, int states) {
  const Type &x = c.type(0), &r = c.type(2);
  for (int i = 0; i < 3; ++i)
    if (c.type(i).rank() != 3)
      return badNode(fmt::format("expected 3 axes in '{}', got {}", c.op.in[i].name, c.type(i).text()));
  const int64_t directions = directionsOf(c.attrs), batch = x.dim(1), hidden = r.dim(2), rows = gates * hidden;
  const std::vector<int64_t> state{directions, batch, hidden};
  const std::vector<int64_t> expected[] = {
      {directions, rows, x.dim(2)}, {directions, rows, hidden}, {directions, 2 * rows}, {batch}, state, state,
      {directions, 3 * hidden}};
  for (int i = 1; i < c.op.in.size(); ++i) {
    if (!c.has(i)) continue;
    AGLOW_TRY(const Shape shape, computedShape(expected[i - 1]));
    AGLOW_OK(checkShape(c, i, shape));
  }
  if (!(c.attrs.real("clip") >= 0))
    return badNode(fmt::format("expected 'clip' to be 0 or positive, got {}", c.attrs.real("clip")));
  AGLOW_OK(activationsOf(c.attrs));
  AGLOW_TRY(Shape all, computedShape({x.dim(0), directions, batch, hidden}));
  AGLOW_TRY(Shape last, computedShape(state));
  std::vector<Type> types{x.withShape(std::move(all))};
  types.resize(static_cast<size_t>(1 + states), x.withShape(std::move(last)));
  return types;
}

}  // namespace

Types rnn(const InferContext& c) { return recurrent(c, 1, 1); }
Types gru(const InferContext& c) { return recurrent(c, 3, 1); }
Types lstm(const InferContext& c) { return recurrent(c, 4, 2); }

}  // namespace aglow::infer
