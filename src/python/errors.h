// Faults as Python exceptions: aglow.Error and its kinds, which python/aglow/_errors.py defines.
#pragma once

#include <nanobind/nanobind.h>

#include "support/diagnostics.h"

namespace aglow::python {

// Raises the exception for all the errors. The GIL is held.
[[noreturn]] void raise(const Diagnostics& diagnostics);

// Runs the body without the GIL, and raises what it gives or throws as a fault.
template <class Body>
auto released(const Body& body);

// Whether a signal came while Python could not see to it (Ctrl-C): for runs, which then end. The exception is set.
bool signalCame();

// What a body threw, as an error.
Error caught(const std::exception& fault);

template <class Body>
auto released(const Body& body) {
  auto result = [&]() -> decltype(body()) {
    const nanobind::gil_scoped_release release;
    try {
      return body();
    } catch (const std::exception& fault) {
      return caught(fault);
    }
  }();
  if (PyErr_Occurred() != nullptr) throw nanobind::python_error();
  if (!result.ok()) raise(result.diagnostics());
  return *std::move(result);
}

}  // namespace aglow::python
