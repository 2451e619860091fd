// Cells of recurrent layers, and the operator that runs a net of them step by step.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "import/caffe2/args.h"
#include "import/caffe2/convert.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

// Equal parts of the last axis.
std::vector<Value> gatesOf(Builder& b, Value gates, int64_t count) {
  const int last = gates.rank() - 1;
  if (last < 0 || gates.dim(last) % count != 0)
    fail(Code::BadNode, fmt::format("expected {} gates side by side, got {}", count, gates.type().text()));
  const int64_t width = gates.dim(last) / count;
  std::vector<Value> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(sliced(b, gates, last, i * width, width));
  return parts;
}

// The new state in rows that still have steps; the others keep the old one, or drop it. `operand` is the first after
// the gates: lengths, if the node has them, then the step.
Value whereRunning(const OpImport& c, int operand, Value fresh, Value old) {
  Builder& b = c.b;
  if (fresh.shape() != old.shape())
    fail(Code::BadNode, fmt::format("expected a state of shape {}, got {}", fresh.shape().text(), old.type().text()));
  if (!flag(c, "sequence_lengths", true)) return fresh;
  const Value lengths = indices(c, operand), step = onnx::asScalar(b, indices(c, operand + 1), "timestep");
  if (fresh.rank() < 2 || lengths.type().elements() != fresh.dim(fresh.rank() - 2))
    fail(Code::BadNode,
         fmt::format("expected a length for each row of {}, got {}", fresh.type().text(), lengths.type().text()));
  const Value running = b.less(step, b.reshaped(lengths, {lengths.type().elements(), 1}));
  return b.where(running, fresh, flag(c, "drop_states") ? b.scalarLike(old, 0) : old);
}

void lstmUnit(OpImport& c) {
  Builder& b = c.b;
  const Value hidden = c.in(0), cell = c.in(1);
  const std::vector<Value> gates = gatesOf(b, c.in(2), 4);
  const Value forget = b.sigmoid(b.add(gates[1], b.scalarLike(gates[1], realArg(c, "forget_bias", 0))));
  const Value fresh = b.add(b.mul(forget, cell), b.mul(b.sigmoid(gates[0]), b.tanh(gates[3])));
  c.out(0, whereRunning(c, 3, b.mul(b.sigmoid(gates[2]), b.tanh(fresh)), hidden));
  c.out(1, whereRunning(c, 3, fresh, cell));
}

void gruUnit(OpImport& c) {
  Builder& b = c.b;
  const Value hidden = c.in(0);
  const std::vector<Value> gates = gatesOf(b, c.in(1), 3);
  const Value update = b.sigmoid(gates[1]), rest = b.sub(b.scalarLike(update, 1), update);
  c.out(whereRunning(c, 2, b.add(b.mul(hidden, update), b.mul(b.tanh(gates[2]), rest)), hidden));
}

// ---------------------------------------------------------------- RecurrentNetwork

// A blob of the step net that is a window of an operand or of a state, from the step's own place (and an offset) on.
struct Link {
  std::string internal, external;
  int64_t offset = 0, window = 1;
};

std::vector<std::string> wordsArg(const OpImport& c, std::string_view name) {
  const Attribute* a = c.attr(name);
  return a == nullptr ? std::vector<std::string>() : a->strings;
}

std::vector<Link> linksOf(const OpImport& c) {
  const std::vector<std::string> internal = wordsArg(c, "link_internal"), external = wordsArg(c, "link_external");
  const std::vector<int64_t> offsets = intsArg(c, "link_offset"), windows = intsArg(c, "link_window");
  if (internal.size() != external.size() || internal.size() != offsets.size() ||
      (!windows.empty() && windows.size() != offsets.size()))
    fail(Code::BadNode, "expected as many entries in 'link_internal' as in 'link_external' and 'link_offset'");
  std::vector<Link> links;
  for (size_t i = 0; i < internal.size(); ++i) {
    links.push_back({internal[i], external[i], offsets[i], windows.empty() ? 1 : windows[i]});
    if (links[i].offset < 0 || links[i].window < 1 || links[i].offset > INT32_MAX || links[i].window > INT32_MAX)
      fail(Code::BadNode, fmt::format("expected an offset from 0 and a window from 1 on, got {} and {}",
                                      links[i].offset, links[i].window));
  }
  return links;
}

onnx::Graph stepNet(const OpImport& c) {
  const Attribute* a = c.attr("step_net");
  if (a != nullptr && a->type == AttributeType::Graph) return *a->g;
  // Older nets hold it as text.
  if (a != nullptr && a->type == AttributeType::String) return nestedGraph(orFail(parseNetText(a->s)));
  fail(Code::BadNode, "argument 'step_net' is required but missing");
}

// Operands and results under the names that the arguments know, steps and states as lists.
class StepByStep {
public:
  explicit StepByStep(OpImport& c) : c_(c), net_(stepNet(c)), links_(linksOf(c)) {
    const Value x = c.in(0);
    if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected [steps, batch, ...], got {}", x.type().text()));
    steps_ = x.dim(0);
    batch_ = x.dim(1);
    const std::vector<std::string> names = wordsArg(c, kOperandNames);
    for (int i = 0; i < c.inputs() && i < static_cast<int>(names.size()); ++i)
      operands_[names[static_cast<size_t>(i)]] = c.in(i);
    addStates();
    net_.outputs.clear();
    for (const Link& link : links_)
      if (states_.contains(link.external) && !isInput(link.internal))
        net_.outputs.push_back({.name = link.internal, .type = {}});
  }

  void run() {
    for (int64_t step = 0; step < steps_; ++step) {
      std::vector<Imported> inputs;
      for (const onnx::ValueInfo& info : net_.inputs) inputs.push_back(Imported::of(valueOf(info.name, step)));
      const std::vector<Imported> results = c_.inlineGraph(net_, inputs);
      size_t next = 0;
      for (const Link& link : links_)
        if (states_.contains(link.external) && !isInput(link.internal)) keep(link, results[next++], step);
    }
    writeResults();
  }

private:
  bool isInput(const std::string& blob) const {
    return std::any_of(net_.inputs.begin(), net_.inputs.end(), [&](const auto& info) { return info.name == blob; });
  }

  // Initial states are one for all rows, one a row, or several steps of those.
  void addStates() {
    const std::vector<std::string> names = wordsArg(c_, "recurrent_states");
    const std::vector<int64_t> ids = intsArg(c_, "initial_recurrent_state_ids");
    if (names.size() != ids.size())
      fail(Code::BadNode, "expected as many entries in 'recurrent_states' as in 'initial_recurrent_state_ids'");
    for (size_t i = 0; i < names.size(); ++i) {
      const Value start = c_.in(static_cast<int>(std::clamp<int64_t>(ids[i], -1, INT32_MAX)));
      if (start.rank() < 1 || start.rank() > 3 || (start.rank() > 1 && start.dim(start.rank() - 2) != batch_))
        fail(Code::BadNode, fmt::format("expected an initial state for {} rows, got {}", batch_, start.type().text()));
      const int64_t width = start.dim(start.rank() - 1);
      const Value steps = start.rank() == 1
                              ? c_.b.expand(start, {.shape = {1, batch_, width}})
                              : c_.b.reshaped(start, {start.rank() == 3 ? start.dim(0) : 1, batch_, width});
      for (int64_t s = 0; s < steps.dim(0); ++s) states_[names[i]].push_back(sliced(c_.b, steps, 0, s, 1));
    }
  }

  Value valueOf(const std::string& blob, int64_t step) {
    for (const Link& link : links_)
      if (link.internal == blob) return windowOf(link, step);
    if (blob == wordArg(c_, "timestep", "timestep"))
      return c_.b.constant(Tensor::of(Type(ElemKind::Int32, Shape{1}), std::vector<int64_t>{step}));
    if (const auto it = operands_.find(blob); it != operands_.end()) return it->second;
    fail(Code::BadNode, fmt::format("the step net reads '{}', which is not an operand and has no link", blob));
  }

  Value windowOf(const Link& link, int64_t step) {
    const int64_t from = step + link.offset;
    const auto outside = [&] {
      fail(Code::BadNode, fmt::format("the link of '{}' reaches beyond '{}'", link.internal, link.external));
    };
    if (const auto it = states_.find(link.external); it != states_.end()) {
      const std::vector<Value>& all = it->second;
      if (from + link.window > static_cast<int64_t>(all.size())) outside();
      if (link.window == 1) return all[static_cast<size_t>(from)];
      return c_.b.concat({all.begin() + from, all.begin() + from + link.window}, {.axis = 0});
    }
    const auto operand = operands_.find(link.external);
    if (operand == operands_.end()) fail(Code::BadNode, fmt::format("nothing is called '{}'", link.external));
    if (operand->second.rank() < 1 || from + link.window > operand->second.dim(0)) outside();
    return sliced(c_.b, operand->second, 0, from, link.window);
  }

  void keep(const Link& link, const Imported& result, int64_t step) {
    std::vector<Value>& all = states_[link.external];
    const Value& like = all.front();
    if (result.kind != Imported::Kind::Tensor || result.tensor.type().elements() != like.type().elements())
      fail(Code::BadNode, fmt::format("expected a state like {} in '{}'", like.type().text(), link.internal));
    if (step + link.offset != static_cast<int64_t>(all.size()))
      fail(Code::BadNode, fmt::format("expected an offset of {} for '{}', got {}",
                                      all.size() - static_cast<size_t>(step), link.internal, link.offset));
    all.push_back(c_.b.reshaped(result.tensor, like.shape().dims()));
  }

  // States from an offset on; below zero it counts from the end.
  void writeResults() {
    const std::vector<std::string> src = wordsArg(c_, "alias_src"), dst = wordsArg(c_, "alias_dst");
    const std::vector<std::string> names = wordsArg(c_, kResultNames);
    const std::vector<int64_t> offsets = intsArg(c_, "alias_offset");
    if (src.size() != dst.size() || src.size() != offsets.size())
      fail(Code::BadNode, "expected as many entries in 'alias_src' as in 'alias_dst' and 'alias_offset'");
    for (size_t i = 0; i < names.size(); ++i) c_.out(static_cast<int>(i), Imported::none());
    for (size_t i = 0; i < src.size(); ++i) {
      const auto state = states_.find(src[i]);
      const auto name = std::find(names.begin(), names.end(), dst[i]);
      if (state == states_.end()) fail(Code::BadNode, fmt::format("no state is called '{}'", src[i]));
      if (name == names.end()) continue;
      const auto count = static_cast<int64_t>(state->second.size());
      const int64_t from = offsets[i] < 0 ? count + offsets[i] : offsets[i];
      if (from < 0 || from >= count)
        fail(Code::BadNode,
             fmt::format("expected an offset within {} steps of '{}', got {}", count, src[i], offsets[i]));
      const std::vector<Value> rest(state->second.begin() + from, state->second.end());
      c_.out(static_cast<int>(name - names.begin()), rest.size() == 1 ? rest.front() : c_.b.concat(rest, {.axis = 0}));
    }
  }

  OpImport& c_;
  onnx::Graph net_;
  std::vector<Link> links_;
  int64_t steps_ = 0, batch_ = 0;
  std::map<std::string, Value> operands_;
  std::map<std::string, std::vector<Value>> states_;  // steps so far, each [1, batch, width]
};

void recurrentNetwork(OpImport& c) { StepByStep(c).run(); }

}  // namespace

std::span<const OpRow> recurrentRows() {
  static constexpr OpRow rows[] = {
      row("LSTMUnit", lstmUnit),
      row("GRUUnit", gruUnit),
      row("RecurrentNetwork", recurrentNetwork),
  };
  return rows;
}

}  // namespace aglow::caffe2
