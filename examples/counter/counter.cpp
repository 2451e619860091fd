// The counter in C++: counter_cpp counter.graph.
#include <aglow/aglow.hpp>
#include <iostream>

int main(int count, char** words) try {
  if (count != 2) return AGLOW_USAGE;
  aglow::Model model(words[1]);
  aglow::Function &add = model.function("add"), &reset = model.function("reset");
  const float step = 2;
  float total = 0;
  add.bindInput(0, &step, 1);
  add.bindOutput(0, &total, 1);
  add.run();
  add.run();
  std::cout << "add gives " << total << "\ncount is " << model.state<float>("count")[0] << "\n";
  model.setState("count", std::vector<float>{40});
  add.run();
  std::cout << "add gives " << total << "\n";
  reset.run();
  std::cout << "count is " << model.state<float>("count")[0] << "\n";
} catch (const aglow::Error& error) {
  std::cerr << error.what() << "\n";
  return error.status();
}
