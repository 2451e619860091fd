#include "quant/quantize.h"

#include <algorithm>

#include "graph/op_views.h"
#include "quant/equalize.h"
#include "quant/product.h"
#include "quant/table.h"

namespace aglow::quant {

namespace {

// The conversion to integers and back, right after the value; members of islands take it from there.
void convert(Builder& b, Value value, const Parameters& parameters, const Islands& islands) {
  const std::vector<Use> uses = value.node->uses();
  Function& function = b.function();
  b.before(value.node->isStorage() ? function.front() : function.next(value.node)).named(value.node->name());
  const Value real = rounded(b, value, parameters);
  for (const Use& use : uses)
    if (use.slot != Use::kPredicate && use.user->function() == &function && islands.members.contains(use.user) &&
        use.user->input(use.slot) == value)
      use.user->setInput(use.slot, real);
}

// Attention over bytes weighs values by bytes. Its operands are converted already.
void roundWeights(Builder& b, Node& pair) {
  if (pair.op() != Op::Attention) return;
  const AttentionNode v(pair);
  for (const Value operand : {v.q(), v.k(), v.v()})
    if (operand.node->isStorage() || operand.node->op() != Op::DequantizeLinear ||
        elemBytes(operand.node->input(0).kind()) != 1)
      return;
  b.before(&pair).named(pair.name());
  Node* rounded = b.attention(v.q(), v.k(), v.v(), v.mask(),
                              {.scale = v.scale(),
                               .softcap = v.softcap(),
                               .left = v.left(),
                               .right = v.right(),
                               .offset = v.offset(),
                               .weights = v.weights(),
                               .precision = v.precision(),
                               .rounded = true});
  replaceAllUses(pair.result(), rounded->result());
  b.function().erase(&pair);
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

namespace {

std::vector<Vetoed> vetoedBy(const Veto& veto, const Function& function, const Request& request) {
  std::vector<Vetoed> vetoed;
  const Islands islands = possibleIslands(function, request.keepFloat);
  for (const std::vector<Node*>& products : {islands.products, islands.pairs})
    for (const Node* product : products) {
      std::string reason = veto ? veto(*product) : "";
      if (reason.empty() && request.profile.keepFloat.contains(product->name()))
        reason = "the samples of the profile showed too much noise with it in integers";
      if (!reason.empty()) vetoed.push_back({product->name(), product->def().name, std::move(reason)});
    }
  return vetoed;
}

Names joined(Names kept, const std::vector<Vetoed>& vetoed) {
  for (const Vetoed& one : vetoed) kept.insert(one.name);
  return kept;
}

}  // namespace

Quantization::Quantization(Function& function, const Request& request, std::vector<Vetoed> vetoed)
    : function_(&function),
      request_(&request),
      islands_(findIslands(function, joined(request.keepFloat, vetoed))),
      profile_(request.profile),
      vetoed_(std::move(vetoed)) {}

Result<Quantization> Quantization::create(Function& function, const Request& request, const Veto& veto) {
  Quantization made(function, request, vetoedBy(veto, function, request));
  AGLOW_OK(checkRequest(function, made.islands_, request));
  AGLOW_TRY(made.chosen_, Chosen::create(made.islands_, made.profile_, request));
  return made;
}

bool Quantization::equalize() {
  if (!quant::equalize(*function_, islands_, profile_)) return false;
  chosen_ = *Chosen::create(islands_, profile_, *request_);
  return true;
}

std::vector<double> Quantization::biasErrors(const Node& product) const {
  const auto input = profile_.channels.find(nameOf(product.input(0)));
  if (input == profile_.channels.end()) return {};
  return quant::biasErrors(product, input->second, *request_->schema);
}

bool Quantization::correctBias() {
  Builder b(*function_);
  bool changed = false;
  for (Node* product : islands_.products) {
    const Bias bias = biasOf(*product);
    if (bias.node == nullptr) continue;
    const std::vector<double> errors = biasErrors(*product);
    const auto& old = static_cast<const Constant&>(*bias.node->input(bias.operand).node);
    std::vector<double> values = old.tensor().doubles();
    for (size_t c = 0; c < errors.size(); ++c) values[c] -= errors[c];
    bias.node->setInput(bias.operand, b.constant(Tensor::of(old.type(), values), old.name()));
    changed = changed || !errors.empty();
  }
  return changed;
}

Result<bool> Quantization::insertConversions() {
  if (islands_.values.empty()) return false;
  return building([&] {
    Builder b(*function_);
    for (Node* product : islands_.products)
      if (const Parameters* input = chosen_.find(product->input(0)))
        quantizeProduct(b, *product, *input, *request_->schema);
    for (const Value value : islands_.values) convert(b, value, *chosen_.find(value), islands_);
    for (Node* pair : islands_.pairs) roundWeights(b, *pair);
    quantizeTables(b, islands_.tables, *request_->schema);
    return true;
  });
}

Result<bool> quantize(Function& function, const Request& request, const std::set<std::string, std::less<>>& disabled) {
  AGLOW_TRY(Quantization made, Quantization::create(function, request));
  if (!disabled.contains(kEqualize)) made.equalize();
  if (!disabled.contains(kCorrectBias)) made.correctBias();
  return made.insertConversions();
}

}  // namespace aglow::quant
