// Plans on instructions: which kernel of the backend runs each of them, and what else it needs.
#pragma once

#include <string>
#include <string_view>

#include "backends/backend.h"

namespace aglow {

// What a backend cannot run, each with the reason, as one error.
class Refusals {
public:
  explicit Refusals(const Backend& backend) : backend_(backend) {}

  // `what` is a node or an instruction.
  void add(std::string_view what, std::string_view name, std::string_view op, std::string_view reason);
  Status status() const;

private:
  const Backend& backend_;
  std::string text_;
};

// Asks the backend for a plan of every instruction that computes and has none.
Status planInstructions(Program& program, const Backend& backend);

// Drops the plans and the working memory of a program that may have been made for another backend or machine. Placement
// is forgotten if there was working memory.
void forgetPlans(Program& program);

}  // namespace aglow
