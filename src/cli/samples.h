// A folder of samples: what a model is profiled with.
#pragma once

#include <string>
#include <vector>

#include "cli/run_request.h"
#include "dynamic/profiling.h"

namespace aglow::cli {

// The files of one sample. A model with one input has a file NAME.npy for each sample, in the order of the names; a
// model with several has a folder for each sample, with a file INPUT.npy for each input. Either may have a file
// NAME.npz with arrays of the inputs' names.
struct SampleFiles {
  std::string name;                                         // of the file or folder
  std::vector<std::pair<std::string, std::string>> inputs;  // names and paths
};
// BadBinding where the folder holds none.
Result<std::vector<SampleFiles>> listSamples(const std::string& folder, const std::vector<std::string>& inputs);

// Calls `use` with the values of each sample, or of the first ones, and shows how far it has come.
Diagnosed<Unit> forEachSample(const ModelFile& file, const ParsedOptions& options, const std::string& folder,
                              const std::function<Diagnosed<Unit>(const ModelValues&)>& use, size_t most = SIZE_MAX);
// "30dB"; Usage error where it is none.
Result<double> decibelsOf(std::string_view text);
// Compiles the model for the sizes of samples; the file outlives it.
WatchedModel::CompileFor compilerOf(const ModelFile& file);

}  // namespace aglow::cli
