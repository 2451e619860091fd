// The page of a model: what every stage made of it, where its memory lies, and where the time of a run goes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/model_options.h"
#include "report/stages.h"

namespace aglow::cli {

class ModelPage {
public:
  // In this order: the stages as they pass, what they ended in, then what was measured.
  void observe(const StageEvent& event) { stages_.observe(event); }
  void add(const Compilation& compilation);
  // Times of a function's instructions (Profile::json), and what a run takes.
  void add(size_t function, const nlohmann::json& profile, const nlohmann::ordered_json& run);

  Status write(const std::string& path, const std::string& model) &&;

private:
  StageRecorder stages_;
  nlohmann::json programs_ = nlohmann::json::array();
  nlohmann::json peak_, run_;
  std::string facts_;
};

// Compiles the model, runs it for a moment on random inputs, and writes its page.
Diagnosed<Unit> writeModelPage(const ModelOptions& model, const std::string& file);

}  // namespace aglow::cli
