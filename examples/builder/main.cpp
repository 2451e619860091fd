// Builds a small convolutional network with the C++ builder, compiles it and runs it.
#include <iostream>

#include "graph/builder.h"
#include "runtime/network.h"

using namespace aglow;

Tensor ramp(Shape shape, double step) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<double>(i % 7) - step;
  return Tensor::fromDoubles(Type(ElemKind::Float32, shape), values);
}

int main() {
  auto module = std::make_unique<Module>();
  const auto built = building([&] {
    Builder b(*module->addFunction("main"));
    const Value image = b.input("image", Type(ElemKind::Float32, {1, 1, 8, 8}));
    Value x = b.conv(image, b.constant(ramp({4, 1, 3, 3}, 0.1)), {}, {.pads = {1, 1, 1, 1}});
    x = b.maxPool(b.relu(x), {.kernel = {2, 2}, .strides = {2, 2}});
    x = b.matMul(b.reshape(x, {.shape = {1, 64}}), b.constant(ramp({64, 3}, 0.05)));
    b.output("classes", b.softmax(x));
    return Unit{};
  });
  if (!built.ok()) return std::cerr << built.error().text() << "\n", 1;

  auto outputs = runModule(std::move(module), {{"image", ramp({1, 1, 8, 8}, 0.5)}});
  if (!outputs.ok()) return std::cerr << outputs.error().text() << "\n", 1;
  for (const double p : outputs->at("classes").doubles()) std::cout << p << "\n";
  return 0;
}
