// Hosts as Python sees them: models in, replies by callback; what users see is python/aglow/_host.py.
#pragma once

#include <nanobind/nanobind.h>

namespace aglow::python {

// Adds the class Host.
void addHost(nanobind::module_& m);

}  // namespace aglow::python
