// What a run gave, shown to people, written for programs, or into files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "graph/model_value.h"
#include "support/error.h"

namespace aglow::cli {

// What one function gave, or the state that is left at the end.
struct NamedOutputs {
  std::string prefix;  // of the names; where one function ran there is none
  std::vector<std::string> names;
  std::vector<ModelValue> values;
  std::vector<bool> areMaps;  // or sequences of them, maybe empty
};

// Names, types, and the first elements.
std::string outputsText(const std::vector<NamedOutputs>& all);
// All elements, in row-major order.
Result<nlohmann::ordered_json> outputsJson(const std::vector<NamedOutputs>& all);
// By the place's name: a folder gets 0.npy, 1.npy, … by position (maps as .json), a FILE.npz all arrays by name; to
// stdout (-) goes the only output as .npy, or several as .npz.
Status writeOutputs(const std::string& place, const std::vector<NamedOutputs>& all);
// `NAME=FILE` for single outputs, by the file's ending: .npy, .npz, .json, .txt (an element a line), or an image. A
// FILE alone is for the only output. All appear together.
Status saveOutputs(const std::vector<std::string>& assignments, const std::vector<NamedOutputs>& all);

// The largest elements along the last axis, of each row of outputs that hold floats.
struct Ranking {
  size_t top = 0;
  std::vector<std::string> labels;  // of the classes, in order; may be empty
};
// A label a line.
Result<std::vector<std::string>> readLabels(const std::string& path);
std::string rankingText(const Ranking& ranking, const std::vector<NamedOutputs>& all);
nlohmann::ordered_json rankingJson(const Ranking& ranking, const std::vector<NamedOutputs>& all);

}  // namespace aglow::cli
