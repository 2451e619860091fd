// RNN, GRU and LSTM. The records know one layout, [steps, batch, width]; batch-first models are transposed around them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "import/onnx/op_tables.h"
#include "ops/recurrent.h"

namespace aglow::onnx {

namespace {

// One function a gate, with its parameters: the model lists parameters only for functions that have them.
void readActivations(const OpImport& c, Attrs& attrs) {
  std::vector<std::string> names = c.words("activations");
  if (names.empty()) return;
  // RNN's own default names both directions, and files repeat it for one.
  const size_t expected = orFail(activationsOf(attrs)).size();
  if (names.size() > expected && opOf(attrs.op()) == Op::RNN) names.resize(expected);
  const std::vector<double> alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  std::vector<double> alpha, beta;
  size_t nextAlpha = 0, nextBeta = 0;
  for (const std::string& name : names) {
    const ActivationInfo* info = findActivation(name);
    if (info == nullptr) fail(Code::BadNode, fmt::format("expected a known function in 'activations', got '{}'", name));
    alpha.push_back(info->parameters > 0 && nextAlpha < alphas.size() ? alphas[nextAlpha++] : info->alpha);
    beta.push_back(info->parameters > 1 && nextBeta < betas.size() ? betas[nextBeta++] : info->beta);
  }
  attrs.set("activations", fmt::format("{}", fmt::join(names, ",")));
  attrs.set("alpha", alpha);
  attrs.set("beta", beta);
}

void recurrent(OpImport& c, Op op) {
  Builder& b = c.b;
  const OpDef& def = opDef(op);
  const bool batchFirst = c.flag("layout");
  if (c.inputs() > def.in.size())
    fail(Code::BadNode, fmt::format("expected at most {} inputs, got {}", def.in.size(), c.inputs()));
  std::vector<Value> operands;
  for (int i = 0; i < c.inputs(); ++i) {
    Value v = i < 3 ? c.in(i) : c.optional(i);
    const bool batched = i == 0 || i == 5 || i == 6;  // x and the initial states
    if (v && batched && batchFirst) {
      if (v.rank() != 3) fail(Code::BadNode, fmt::format("expected 3 axes in input {}, got {}", i, v.type().text()));
      v = b.transposed(v, {1, 0, 2});
    }
    operands.push_back(v);
  }
  if (const Value r = c.in(2); c.hasAttr("hidden_size") && r.rank() == 3 && c.integer("hidden_size") != r.dim(2))
    fail(Code::BadNode, fmt::format("expected weights of the state with {} columns as 'hidden_size' says, got {}",
                                    c.integer("hidden_size"), r.type().text()));

  Attrs attrs(def);
  attrs.set("direction", c.word("direction", "forward"));
  readActivations(c, attrs);
  attrs.set("clip", c.real("clip", 0));
  for (const char* flag : {"linear_before_reset", "input_forget"})
    if (attrs.indexOf(flag) >= 0) attrs.set(flag, int64_t{c.flag(flag)});
  aglow::Node* node = b.make(std::move(operands), std::move(attrs));
  for (int i = 0; i < node->resultCount(); ++i) {
    const Value v = node->result(i);
    if (!c.wants(i))
      c.out(i, Imported::none());
    else
      c.out(i, !batchFirst ? v : i == 0 ? b.transposed(v, {2, 0, 1, 3}) : b.transposed(v, {1, 0, 2}));
  }
}

void rnn(OpImport& c) { recurrent(c, Op::RNN); }
void gru(OpImport& c) { recurrent(c, Op::GRU); }
void lstm(OpImport& c) { recurrent(c, Op::LSTM); }

}  // namespace

std::span<const OpRow> recurrentRows() {
  static constexpr OpRow rows[] = {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}};
  return rows;
}

}  // namespace aglow::onnx
