#include "quant/quantize.h"

#include "quant/choose.h"
#include "quant/product.h"

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
    watched.push_back({nameOf(value), value, output});
  }
  return watched;
}

Result<bool> quantize(Function& function, const Request& request) {
  const Islands islands = findIslands(function, request.keepFloat);
  AGLOW_TRY(const Chosen chosen, Chosen::create(function, islands, request));
  if (islands.values.empty()) return false;
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
