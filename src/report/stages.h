// What the phases of a compilation made of a model, as data for a page: every node and instruction once, and for each
// stage which of them there are, so that what a stage changed is the difference of two lists.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "compile/compile.h"

namespace aglow {

class StageRecorder {
public:
  // To be called for every event of a compilation.
  void observe(const StageEvent& event);
  // {"records": [[operator, kind, name, type, attributes, [operands], [results]], ...],
  //  "stages": [{"phase", "on", "ms", "passes": [...], "functions": [{"name", "records": [numbers]}]}, ...]}
  nlohmann::json json() &&;

private:
  using Record = nlohmann::json;

  nlohmann::json recordsOf(const Module& module, const Function& function);
  nlohmann::json recordsOf(const Program& program);
  size_t numberOf(const Record& record);

  std::map<std::string, size_t, std::less<>> numbers_;  // by text
  nlohmann::json records_ = nlohmann::json::array();
  nlohmann::json stages_ = nlohmann::json::array();
  nlohmann::json passes_ = nlohmann::json::array();  // of the phase that is under way
};

}  // namespace aglow
