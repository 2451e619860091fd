// Passes over a function and what they share: the evaluator, what is switched off, and counts of what happened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "graph/evaluator.h"
#include "graph/module.h"

namespace aglow {

struct PassContext {
  Evaluator& evaluator;
  std::set<std::string, std::less<>> disabled = {};             // names of passes and rules
  std::map<std::string, int64_t, std::less<>> statistics = {};  // how often each rule or pass did something

  bool enabled(std::string_view name) const { return disabled.find(name) == disabled.end(); }
  void count(std::string_view name, int64_t times = 1) {
    if (times > 0) statistics.try_emplace(std::string(name), 0).first->second += times;
  }
};

// One step over a function; it may also tidy the storage of the function's module. Says whether anything changed.
struct Pass {
  std::string name;
  std::string doc;
  std::function<Result<bool>(Function&, PassContext&)> run;
};

}  // namespace aglow
