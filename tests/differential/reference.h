// What a case means, node by node in the interpreter, and how far rounding may move each element of its outputs.
//
// Backends round differently: they sum in another order, compute formulas in the kind itself instead of in f64, fuse
// and fold. Each such difference is worth some units in the last place at one node; what it is worth in an output
// depends on all that follows: nothing after a comparison, everything after the difference of near equals. So the
// bound is measured, not guessed (Monte Carlo arithmetic): the graph is evaluated several times with every operand and
// result of rounding operators moved by random units in the last place. Where the outputs do not move, they have to
// agree almost to the bit; where they jump, nothing can be said; and what no rounding operator touched has to agree
// exactly.
#pragma once

#include <string>
#include <vector>

#include "case.h"

namespace aglow::differential {

class Reference {
public:
  // The outputs, or the error (such as an index outside of its axis) that a run ends with.
  static Result<Reference> of(const Case& c);

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<Tensor>& outputs() const { return exact_; }
  // The values of all nodes' results in the function's order, to cut graphs in two.
  const std::vector<std::vector<Tensor>>& values() const { return values_; }

  // The first difference in words, or nothing. What is more than some units in the last place away is measured
  // first.
  std::string difference(size_t output, const Tensor& got);
  // How far each element may be off, as f64; infinite where nothing can be said.
  Tensor bounds(size_t output);
  // The same with a wider margin for engines that are free to choose the precision of their functions.
  double margin = 1;

private:
  explicit Reference(const Case& c) : case_(&c) {}
  void evaluateMore(int times);
  std::vector<double> allowed(size_t output) const;
  std::string compare(size_t output, const Tensor& got) const;

  const Case* case_;
  Case lowered_;
  std::vector<std::string> names_;
  std::vector<Tensor> exact_;
  std::vector<bool> rounded_;  // an output that some rounding operator contributed to
  std::vector<std::vector<Tensor>> values_;
  std::vector<std::vector<Tensor>> moved_;  // an evaluation's outputs
};

}  // namespace aglow::differential
