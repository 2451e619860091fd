// The short way of a call: arrays that nothing has to be done to go straight to the network that runs them, and outputs
// are written into new arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "python/model.h"

namespace aglow::python {

// One function of a model. Everything is called with the GIL, which is given up for the run alone.
class Calls {
public:
  // `order` names the inputs in the order of arguments; the outputs are those of the function, in its order. `empty`,
  // `array` and `dtypes` are numpy.empty, numpy.ndarray and what they take for each kind of element.
  Calls(std::shared_ptr<Model> model, std::string function, std::vector<std::string> order,
        std::vector<std::string> outputs, nanobind::object empty, nanobind::object array, nanobind::dict dtypes);

  // What the function gives (an array, or a tuple of them); NotImplemented where the arguments, or the model, need more
  // than this way has. So does the first call with arguments of its types, which may have something to warn of.
  nanobind::object call(const nanobind::args& arguments);

private:
  struct Output {
    nanobind::object shape, dtype;
    nanobind::object room;  // bytes, with what aligning them may take
    Type type;
  };
  // What is known of arguments of one set of types.
  struct Plan {
    std::vector<Type> types;        // of the arguments
    Model::Whole whole;             // none: these are to go the long way
    std::vector<size_t> arguments;  // by input of the network
    std::vector<Type> inputs;       // of the network
    std::vector<Output> outputs;    // of the network, in its order
    std::vector<size_t> results;    // the network's output of each of the function's
  };

  // Compiles for arguments of these types, where that is new.
  void learn(std::vector<Type> types);
  void fill(Plan& plan) const;

  static constexpr size_t kPlans = 16;

  std::shared_ptr<Model> model_;
  std::string function_;
  std::vector<std::string> order_, outputs_;
  struct Makers {
    nanobind::object empty, array, byte;
  };
  Makers makers_;
  nanobind::dict dtypes_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // the last used first
};

void addCalls(nanobind::module_& m);

}  // namespace aglow::python
