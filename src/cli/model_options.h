// Options that every command with a model shares: which file, which sizes, which passes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/options.h"
#include "compile/compile.h"
#include "import/onnx/importer.h"
#include "media/preprocess.h"

namespace aglow::cli {

// What the words of a command line mean for a model.
struct ParsedOptions {
  onnx::ImportOptions import;
  CompileOptions compile;
};

struct ModelOptions {
  std::string model, init;
  std::vector<std::string> shapes, dims, values, functions, disable, printAfter;
  std::string backend, startFrom, stopAfter, dump;
  codegen::TargetOptions target;
  int64_t lanes = 0;
  bool fuse = false, tune = false, verifyEach = false, timing = false, strict = false, verbose = false;
  bool followLinks = false;
  std::optional<double> tuneSeconds;
  std::shared_ptr<std::set<std::string>> warned = std::make_shared<std::set<std::string>>();  // what was said already
  std::string memoryLimit, recompute, deviceMemory, f64;
  std::string precision = "float", profile, calibration, schema;
  std::vector<std::string> keepFloat;

  std::vector<Option> options();
  // Usage errors name the option. `cache` is where compiled models are kept, unless passes are to be seen.
  Result<ParsedOptions> parse(const std::string& cache = {}) const;
  Result<int64_t> memoryLimitBytes() const;
  // What becomes integers; null where the model stays as it is.
  Result<std::shared_ptr<const quant::Request>> quantization() const;
  // Gives 1 to sizes that nobody decides, and says on stderr, once, which these are.
  void takeOnes(const onnx::Graph& graph, onnx::ImportOptions& import) const;
  // Says on stderr, once, where the model departs from the standard.
  onnx::Tolerance tolerance() const;
};

// Dimensions with more than one size, in the order they were named.
using SeveralSizes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
// Takes those of the form NAME=1,4,8 out of the words of --dim.
Result<SeveralSizes> takeSeveralSizes(std::vector<std::string>& dims);

// NAME=REST, split at the last '='.
Result<std::pair<std::string, std::string>> splitAtEquals(const std::string& text, std::string_view option);

// A number of bytes, as 512M.
Result<int64_t> parseBytes(std::string digits, std::string_view option);

// The Usage error for a name that an option gives a second time.
Error givenTwice(std::string_view option, std::string_view name);

// Values of a model's inputs, read from the files given as NAME=FILE, or as FILE where the model has one input; FILE is
// as readValue has it. The model says which element kinds to expect.
Result<std::map<std::string, ModelValue>> readInputs(const onnx::Graph& graph,
                                                     const std::vector<std::string>& assignments,
                                                     std::string_view option, const media::Preprocess& images = {});

// A loaded model file: ONNX models and Caffe2 nets as ONNX's structs; text forms only by their path.
struct ModelFile {
  std::string path;
  std::optional<onnx::Model> onnx;
};
Result<ModelFile> openModel(const ModelOptions& options);
Diagnosed<Compilation> compile(const ModelFile& file, const ParsedOptions& options);

// The table of passes with their times, for --timing.
std::string timingTable(const Compilation& compilation);

}  // namespace aglow::cli
