#include "quant/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/builder.h"
#include "quant/islands.h"
#include "support/suggest.h"

namespace aglow::quant {

namespace {

Error usage(std::string message, std::string hint) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

constexpr std::string_view kAgain = "make the profile again from this model, with `aglow profile`";

// Names to keep are of nodes, or of operators.
Status checkKept(const Function& function, const std::set<std::string>& kept) {
  std::vector<std::string_view> names = quantizedOperators();
  for (const auto& node : function.nodes())
    if (roleOf(*node) != Role::Float) names.emplace_back(node->name());
  for (const std::string& name : kept) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string hint = didYouMean(name, names);
    if (hint.empty()) hint = "`aglow inspect MODEL --explain` lists the nodes; operators are named as in `aglow ops`";
    return usage(fmt::format("nothing that could be quantized is named '{}'", name), std::move(hint));
  }
  return {};
}

// The parameters of each group, from what is known of all its values.
class Chosen {
public:
  static Result<Chosen> create(const Islands& islands, const Request& request) {
    Chosen chosen;
    std::unordered_map<size_t, ValueProfile> known;
    for (const Value value : islands.values) {
      const std::string name = nameOf(value);
      const auto found = request.profile.values.find(name);
      if (found == request.profile.values.end())
        return usage(fmt::format("the profile says nothing of '{}'", name), std::string(kAgain));
      known[islands.group.at(value)].add(found->second);
    }
    for (const auto& [group, profile] : known)
      chosen.byGroup_[group] =
          parametersFor(request.calibration.choose(profile, levelsOf(*request.schema)), *request.schema);
    for (const Value value : islands.values) chosen.byValue_[value] = chosen.byGroup_.at(islands.group.at(value));
    return chosen;
  }

  // Null for values that stay floats.
  const Parameters* find(Value value) const {
    const auto it = byValue_.find(value);
    return it == byValue_.end() ? nullptr : &it->second;
  }

private:
  std::unordered_map<size_t, Parameters> byGroup_;
  std::unordered_map<Value, Parameters, ValueHash> byValue_;
};

Value vectorOf(Builder& b, const std::vector<float>& values) {
  return b.constant(Tensor::of(Type(ElemKind::Float32, Shape({std::ssize(values)})), values));
}

// Weights as integers, in front of the node that takes them.
Value dequantized(Builder& b, Tensor integers, std::string_view name, const std::vector<float>& scales, int axis) {
  return b.dequantizeLinear(b.constant(std::move(integers), name), vectorOf(b, scales), {},
                            {.axis = axis, .to = ElemKind::Float32});
}

// A constant that is added to each column of a product, and nothing else: where it is, and the node that adds it.
struct Bias {
  Node* node = nullptr;
  int operand = 0;
};

Bias biasOf(Node& product) {
  if (product.op() == Op::Conv) return isConstant(product.input(2)) ? Bias{&product, 2} : Bias{};
  if (product.uses().size() != 1) return {};
  const Use use = product.uses().front();
  if (use.user->op() != Op::Add || use.slot == Use::kPredicate) return {};
  const int other = 1 - use.slot;
  const Value bias = use.user->input(other);
  const int64_t columns = product.type().dim(product.type().rank() - 1);
  const bool fits = isConstant(bias) && bias.rank() > 0 && bias.dim(bias.rank() - 1) == columns &&
                    bias.type().elements() == columns && use.user->type() == product.type();
  return fits ? Bias{use.user, other} : Bias{};
}

// A bias at the scale of the products fits 32 bits with room for the sum: where weights are tiny and the bias is not,
// the scale of the weights is larger than they need.
std::vector<double> leastScales(const Tensor* bias, int64_t channels, double inputScale) {
  constexpr double kMost = 0x1p30;
  if (bias == nullptr) return {};
  std::vector<double> least;
  const auto* values = bias->ref().as<const float>();
  for (int64_t c = 0; c < channels; ++c)
    least.push_back(std::abs(static_cast<double>(values[c])) / (inputScale * kMost));
  return least;
}

void quantizeProduct(Builder& b, Node& product, const Parameters& input, const Schema& schema) {
  const int axis = product.op() == Op::Conv ? 0 : 1;
  const Constant& weights = *asConstant(product.input(1));
  const int64_t channels = weights.type().dim(axis);
  const Bias bias = biasOf(product);
  const Tensor* biasTensor = bias.node == nullptr ? nullptr : &asConstant(bias.node->input(bias.operand))->tensor();
  const Weights quantized = quantizeWeights(weights.tensor(), axis, schema,
                                            leastScales(biasTensor, channels, static_cast<double>(input.scale)));
  b.before(&product).named(product.name());
  product.setInput(1, dequantized(b, quantized.integers, weights.name(), quantized.scales, axis));
  if (biasTensor == nullptr) return;
  std::vector<float> scales;
  for (const float scale : quantized.scales) scales.push_back(scale * input.scale);
  const Node& old = *bias.node->input(bias.operand).node;
  b.before(bias.node).named(bias.node->name());
  bias.node->setInput(bias.operand,
                      dequantized(b, quantizeBias(*biasTensor, scales), old.name(), scales, old.type().rank() - 1));
}

// The conversion to integers and back, right after the value; members of islands take it from there.
void convert(Builder& b, Value value, const Parameters& parameters, const Islands& islands) {
  const std::vector<Use> uses = value.node->uses();
  Function& function = b.function();
  b.before(value.node->isStorage() ? function.front() : function.next(value.node)).named(value.node->name());
  const Value scale = b.scalar(ElemKind::Float32, static_cast<double>(parameters.scale));
  const Value offset = b.scalar(parameters.kind, static_cast<double>(parameters.offset));
  const Value integers = b.quantizeLinear(value, scale, offset, {.axis = 0, .to = parameters.kind});
  const Value real = b.dequantizeLinear(integers, scale, offset, {.axis = 0, .to = ElemKind::Float32});
  for (const Use& use : uses)
    if (use.slot != Use::kPredicate && use.user->function() == &function && islands.members.contains(use.user) &&
        use.user->input(use.slot) == value)
      use.user->setInput(use.slot, real);
}

}  // namespace

Result<std::shared_ptr<const Request>> requestOf(Profile profile, std::string_view calibration, std::string_view schema,
                                                 const std::vector<std::string>& keepFloat) {
  auto request = std::make_shared<Request>();
  request->profile = std::move(profile);
  if (!calibration.empty()) {
    AGLOW_TRY(request->calibration, Calibration::parse(calibration));
  }
  if (!schema.empty()) {
    AGLOW_TRY(request->schema, findSchema(schema));
  }
  request->keepFloat.insert(keepFloat.begin(), keepFloat.end());
  return std::shared_ptr<const Request>(std::move(request));
}

std::vector<Watched> watchValues(Function& function) {
  std::vector<Watched> watched;
  Builder b(function);
  for (const Value value : findIslands(function).values) {
    Placeholder* output = function.module().addPlaceholder("profile of " + nameOf(value), value.type());
    b.save(value, output);
    watched.push_back({nameOf(value), output});
  }
  return watched;
}

Result<bool> quantize(Function& function, const Request& request) {
  AGLOW_OK(checkKept(function, request.keepFloat));
  const Islands islands = findIslands(function, request.keepFloat);
  if (islands.values.empty()) return false;
  if (const uint64_t here = fingerprintOf(function); here != request.profile.model)
    return usage(fmt::format("the profile is of another model: it is of {:016x}, and this is {:016x}",
                             request.profile.model, here),
                 std::string(kAgain));
  AGLOW_TRY(const Chosen chosen, Chosen::create(islands, request));
  return building([&] {
    Builder b(function);
    for (Node* product : islands.products)
      if (const Parameters* input = chosen.find(product->input(0)))
        quantizeProduct(b, *product, *input, *request.schema);
    for (const Value value : islands.values) convert(b, value, *chosen.find(value), islands);
    return true;
  });
}

}  // namespace aglow::quant
