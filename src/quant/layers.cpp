#include "quant/layers.h"

#include "quant/product.h"

namespace aglow::quant {

namespace {

// The product in integers, right after it, less the errors of its columns.
Value besides(Builder& b, Node& product, const Parameters& input, const Schema& schema,
              const std::vector<double>& errors) {
  Function& function = b.function();
  b.before(function.next(&product)).named(product.name());
  std::vector<Value> inputs = product.inputs();
  inputs.front() = rounded(b, inputs.front(), input);
  Node* copy = cloneNode(product, inputs, product.predicate(), function, function.next(inputs.front().node));
  quantizeProduct(b, *copy, input, schema);
  b.before(function.next(copy));
  if (errors.empty()) return copy->result();
  const bool conv = product.op() == Op::Conv;
  std::vector<int64_t> along(conv ? static_cast<size_t>(product.type().rank()) - 1 : 1, 1);
  along.front() = std::ssize(errors);
  return b.sub(copy->result(), b.constant(Tensor::of(Type(ElemKind::Float32, Shape(along)), errors)));
}

}  // namespace

Result<Switched> switchLayers(Function& function, const Quantization& quantization, bool correctBias) {
  std::vector<std::pair<Node*, Parameters>> products;  // with those of what they take, before that is switched too
  for (Node* product : quantization.islands().products)
    if (const Parameters* input = quantization.chosen().find(product->input(0))) products.emplace_back(product, *input);
  std::vector<std::vector<double>> errors;
  for (const auto& [product, input] : products)
    errors.push_back(correctBias ? quantization.biasErrors(*product) : std::vector<double>());
  Switched switched;
  if (products.empty()) return switched;
  const Shape flags({std::ssize(products)});
  switched.which = function.module().addPlaceholder("layers in integers", Type(ElemKind::Bool, flags));
  const auto built = building([&] {
    Builder b(function);
    for (const auto& [node, input] : products) {
      Node& product = *node;
      const std::vector<Use> uses = product.uses();
      const Value integers = besides(b, product, input, quantization.schema(), errors[switched.layers.size()]);
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
