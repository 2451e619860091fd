#include "quant/layers.h"

#include "quant/choose.h"
#include "quant/product.h"

namespace aglow::quant {

namespace {

// The product in integers, right after it.
Value besides(Builder& b, Node& product, const Parameters& input, const Schema& schema) {
  Function& function = b.function();
  b.before(function.next(&product)).named(product.name());
  std::vector<Value> inputs = product.inputs();
  inputs.front() = rounded(b, inputs.front(), input);
  Node* copy = cloneNode(product, inputs, product.predicate(), function, function.next(inputs.front().node));
  quantizeProduct(b, *copy, input, schema);
  b.before(function.next(copy));
  return copy->result();
}

}  // namespace

Result<Switched> switchLayers(Function& function, const Request& request) {
  const Islands islands = findIslands(function, request.keepFloat);
  AGLOW_TRY(const Chosen chosen, Chosen::create(function, islands, request));
  std::vector<std::pair<Node*, Parameters>> products;  // with those of what they take, before that is switched too
  for (Node* product : islands.products)
    if (const Parameters* input = chosen.find(product->input(0))) products.emplace_back(product, *input);
  Switched switched;
  if (products.empty()) return switched;
  const Shape flags({std::ssize(products)});
  switched.which = function.module().addPlaceholder("layers in integers", Type(ElemKind::Bool, flags));
  const auto built = building([&] {
    Builder b(function);
    for (const auto& [node, input] : products) {
      Node& product = *node;
      const std::vector<Use> uses = product.uses();
      const Value integers = besides(b, product, input, *request.schema);
      const Value number = b.scalar(ElemKind::Int64, static_cast<double>(switched.layers.size()));
      const Value flag = b.gather(switched.which->result(), number, {.axis = 0});
      const Value one = b.where(flag, integers, product.result());
      for (const Use& use : uses)
        if (use.slot == Use::kPredicate)
          use.user->setPredicate(one);
        else
          use.user->setInput(use.slot, one);
      switched.layers.push_back({product.name(), product.def().name});
    }
    return Unit{};
  });
  if (!built.ok()) return built.error();
  return switched;
}

}  // namespace aglow::quant
