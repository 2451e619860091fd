// Graphs that Python builds: a module, the builders of its functions, and the values between nodes. What users see is
// python/aglow/_graph.py.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "graph/module.h"

namespace aglow::python {

// A module under construction. Values and builders keep it alive.
struct Graph {
  std::shared_ptr<Module> module = std::make_shared<Module>();
};

// Adds the classes Graph, Builder and Value.
void addGraph(nanobind::module_& m);

}  // namespace aglow::python
