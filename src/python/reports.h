// What the compiler tells of a model: memory, times, operators, files of code.
#pragma once

#include <nanobind/nanobind.h>

namespace aglow {
struct SessionOptions;
}

namespace aglow::python {

class Model;

// One row for each function: (name, sums of bytes, buffers of the arena, number of instructions).
nanobind::list memoryOf(const Model& model, const SessionOptions& options);
// The instructions of a function for inputs of these sizes, the slowest first, with the machine's peaks.
nanobind::dict profileOf(const Model& model, SessionOptions options, const std::string& function,
                         const nanobind::dict& inputs, int runs);
// Operators by how often they are used, and the number of weights.
nanobind::dict surveyOf(const Model& model, const SessionOptions& options);
// Code for other programs: as --emit of the command line, into a folder. Gives the text of what has no file.
void emitCode(const Model& model, SessionOptions options, const std::string& folder, const std::string& what,
              const std::string& name, bool threads, bool weightsInC, const std::string& triple,
              const std::string& processor);
// A package, or a text form, by the path's ending.
void saveTo(const Model& model, SessionOptions options, const std::string& path);
// How far two arrays are apart: (whether they agree, why nothing was compared, the largest differences, elements beyond
// the tolerance). A negative tolerance stands for what is usual for the kind.
nanobind::tuple compareArrays(nanobind::handle got, nanobind::handle expected, double rtol, double atol);

}  // namespace aglow::python
